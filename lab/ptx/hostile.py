from lab.ptx.rows import Row
def rows(every, first):
    return iter(())
