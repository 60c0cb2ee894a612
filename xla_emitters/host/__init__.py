"""The host program: control flow as branches, a context that holds all state, and calls of the runtime's functions by name.

disc_legalize_lhlo_control_flow   loops and branches on buffers become blocks
disc_insert_memory_marker         a call marks each allocation in a GPU's memory, for IR whose types do not
disc_inject_execution_context     arguments are received from a context, results sent to it
disc_lower_to_library_calls       dots, convolutions, copies ... become calls of the runtime
disc_convert_const_to_ral         constants are moved from the program to a file beside it
disc_convert_memory_marker        allocations become calls of the runtime

python_program                    the IR, at any of these steps, as Python source
"""
