"""The host program: control flow as branches, a context that holds all state, and calls of the runtime's functions by name.

disc_legalize_lhlo_control_flow   loops and branches on buffers become blocks
disc_insert_memory_marker         a call says which allocations are a GPU's, where the type does not
disc_inject_execution_context     arguments are received from a context, results sent to it
disc_lower_to_library_calls       products, convolutions, copies ... become calls of the runtime
disc_convert_const_to_ral         constants leave the program for a file beside it
disc_convert_memory_marker        allocations become calls of the runtime

python_program                    the IR, at any of these steps, as Python source
"""
