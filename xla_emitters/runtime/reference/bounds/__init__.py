"""Error bounds, a file for each kind of op: the results that any correct kernel may give. `runtime/reference/tolerance.py` lists what
is promised.

elementwise_bounds.py  real functions, by their ends, turning points and poles; choices; integers
complex_bounds.py      complex functions, by discs
sums.py                sums whose order is open
contraction_bounds.py  dot, convolution
reduction_bounds.py    reduce, reduce-window
scatter_bounds.py      scatter
indexed_windows.py     ops that read or write windows, where the indices are not certain
sensitivity.py         small chains again, by derivatives: tighter where values cancel
"""
