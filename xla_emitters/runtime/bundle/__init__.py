"""Programs packed for a machine that has only Python, NumPy, ml_dtypes and CuPy, and the script that runs them there."""
