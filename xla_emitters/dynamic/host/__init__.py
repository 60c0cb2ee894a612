"""The host program: control flow as branches, a context that holds all state, and calls of the runtime's functions by name.

disc_legalize_lhlo_control_flow   loops and branches on buffers become blocks
disc_inject_execution_context     arguments are received from a context, results sent to it
disc_lower_to_library_calls       dots, convolutions, copies ... become calls of the runtime
disc_convert_const_to_ral         constants are moved from the program to a file beside it

steps_of_buffers                  the program before these passes, as steps for `runtime/walk`
disc_lower_host_integers, disc_rewrite_ral_api, disc_lower_host_memrefs: the same program as machine code
"""
