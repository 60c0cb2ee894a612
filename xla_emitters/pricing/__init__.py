"""The cost of a kernel, computed without a GPU: resources, instructions, bytes, and an expected time with the bound that determines it.

    PTX ─ptxas─> registers, spills, shared bytes ─occupancy─> resident warps ┐
        └nvdisasm─> SASS ─issue─> cycles of pipes                            │
                         └latency─> cycles of one warp, bytes in flight      ├─model─> KernelCost ─report─> text, JSON
    kernel's IR ─executor, traffic─> sectors, bank conflicts                 │
    HLO ─maps, graph/footprint─> bytes that must move                        ┘

    a library call's arrays ─calls─> its products at the tensor cores' peak, or its bytes ─> CallCost

The model is described in docs/cost_model.md. Its times are expectations with a range, never measurements.
"""
