"""From HLO of which each fusion is one kernel to the steps of a program: what runs when, on which arrays, in whose memory."""
