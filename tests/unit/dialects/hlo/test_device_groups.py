"""Groups of devices: the forms of text, and what they are groups of. Values written by hand after XLA's collective_ops_utils.h."""

import pytest

from xla_emitters.dialects.hlo.device_groups import devices_of, groups_of, pairs_of
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.errors import DataError, XlaEmittersError
from xla_emitters.text.hlo import parse_hlo


def op_of(instruction: str, header: str) -> RuleOp:
    text = f"""HloModule m{header}
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY main {{ x = f32[8] parameter(0)
  ROOT r = {instruction} }}
"""
    (found,) = (
        op for op in parse_hlo(text).walk() if isinstance(op, RuleOp) and op.opcode not in ("while", "conditional")
    )
    return found


R4, P4, R2P2, P8 = (
    ", replica_count=4",
    ", num_partitions=4",
    ", replica_count=2, num_partitions=2",
    ", num_partitions=8",
)


@pytest.mark.parametrize(
    ("attributes", "header", "groups"),
    [
        ("replica_groups={}", R4, [[0, 1, 2, 3]]),
        ("replica_groups={{0,2},{1,3}}", R4, [[0, 2], [1, 3]]),
        ("replica_groups={}", P4, [[0], [1], [2], [3]]),
        ("replica_groups={{0,1}}", R2P2, [[0, 2], [1, 3]]),
        ("channel_id=1, replica_groups={{0},{1}}", R2P2, [[0, 1], [2, 3]]),
        ("channel_id=1, replica_groups={{1,0}}", R2P2, [[2, 3, 0, 1]]),
        ("channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true", R2P2, [[0, 3], [1, 2]]),
        ("channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true", P8, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (
            "channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true",
            P8,
            [[0, 2, 4, 6], [1, 3, 5, 7]],
        ),
        (
            "channel_id=1, replica_groups=mesh['x'=2,'y'=4] {'x'}, use_global_device_ids=true",
            P8,
            [[0, 4], [1, 5], [2, 6], [3, 7]],
        ),
        (
            "channel_id=1, replica_groups=mesh['x'=2,'y'=4] {'x','y'}, use_global_device_ids=true",
            P8,
            [[0, 1, 2, 3, 4, 5, 6, 7]],
        ),
        (
            "channel_id=1, replica_groups=mesh['x'=2,'y'=4] {'y':(2)2}, use_global_device_ids=true",
            P8,
            [[0, 1], [2, 3], [4, 5], [6, 7]],
        ),
        (
            "channel_id=1, replica_groups=mesh['x'=2,'y'=4] {'y':(1)2}, use_global_device_ids=true",
            P8,
            [[0, 2], [1, 3], [4, 6], [5, 7]],
        ),
        (
            "channel_id=1, replica_groups=mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'x'}, use_global_device_ids=true",
            P8,
            [[0, 1], [2, 3], [4, 5], [6, 7]],
        ),
        (
            "channel_id=1, replica_groups=mesh['x'=8], device_ids=(7,6,5,4,3,2,1,0) {'x':(1)4}, use_global_device_ids=true",
            P8,
            [[7, 5, 3, 1], [6, 4, 2, 0]],
        ),
    ],
)
def test_groups_of_an_all_reduce(attributes: str, header: str, groups: list[list[int]]) -> None:
    found = groups_of(op_of(f"f32[8] all-reduce(x), {attributes}, to_apply=add", header))
    assert sorted(map(list, found)) == sorted(groups)


@pytest.mark.parametrize(
    ("attributes", "header", "groups"),
    [
        ("replica_groups={{0,1}}", R2P2, [[0, 2], [1, 3]]),
        ("channel_id=1, replica_groups={{0,1}}", R2P2, [[0, 1], [2, 3]]),
        ("channel_id=1, replica_groups={{0,2},{1,3}}", P4, [[0, 2], [1, 3]]),
    ],
)
def test_a_channel_makes_partitions_of_an_all_to_all(attributes: str, header: str, groups: list[list[int]]) -> None:
    found = groups_of(op_of(f"f32[8] all-to-all(x), dimensions={{0}}, {attributes}", header))
    assert sorted(map(list, found)) == sorted(groups)


def test_pairs_of_a_permute() -> None:
    text = "f32[8] collective-permute(x), {}source_target_pairs={{{{0,1}},{{1,0}}}}"
    assert pairs_of(op_of(text.format("channel_id=1, "), R2P2)) == ((0, 1), (2, 3), (1, 0), (3, 2))
    assert pairs_of(op_of(text.format(""), R2P2)) == ((0, 2), (1, 3), (2, 0), (3, 1))


def test_a_module_needs_the_devices_that_its_groups_name() -> None:
    text = "HloModule m\nENTRY main { x = f32[8] parameter(0)\n  ROOT p = f32[8] collective-permute(x), source_target_pairs={{0,5}} }"
    assert devices_of(parse_hlo(text)) == 6
    assert devices_of(parse_hlo("HloModule m, num_partitions=512\nENTRY main { ROOT x = f32[8] parameter(0) }")) == 512


@pytest.mark.parametrize(("receiver", "named"), [("1", ""), ("5", "device 5,"), ("7" * 5000, "device 1048576,")])
def test_a_transfer_to_a_device_that_the_module_does_not_have(receiver: str, named: str) -> None:
    """Front end attributes are text: a number may have any length."""
    pairs = f'frontend_attributes={{_xla_send_recv_source_target_pairs="{{{{0,{receiver}}}}}"}}'
    module = parse_hlo(f"""HloModule m, num_partitions=2
ENTRY main {{ x = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, t), channel_id=1, {pairs}
  ROOT d = token[] send-done(s), channel_id=1 }}""")
    if not named:
        assert devices_of(module) == 2
        return
    with pytest.raises(DataError, match=f"%s = send names {named} but the module is for 2 devices"):
        devices_of(module)


@pytest.mark.parametrize(
    "groups",
    [
        "{{0,1},{1,2}}",
        "{{0},{2}}",
        "[3,2]<=[4]",
        "[2,2]<=[4]T(1,0)",
        "[1048576,1048576]<=[1099511627776]",
        "mesh['x'=2] {'z'}",
        "mesh['x'=0] {'x'}",
        "mesh['x'=2,'y'=2] {'x','x'}",
        "mesh['x'=4] {'x':(0)2}",
        "mesh['x'=4] {'x':(3)2}",
        "mesh['x'=4], device_ids=(0,1,1,2) {'x'}",
        "mesh['x'=4], device_ids=(0,1) {'x'}",
    ],
)
def test_groups_that_are_none_are_refused_with_their_place(groups: str) -> None:
    with pytest.raises(XlaEmittersError, match="replica_groups=") as raised:
        op_of(f"f32[8] all-reduce(x), channel_id=1, replica_groups={groups}, to_apply=add", "")
    assert raised.value.place is not None


@pytest.mark.parametrize(
    "groups",
    ["{{0,1},{1,2}}", "{{0,-1}}", "{{}}", "[2,2]<=[3]", "mesh['x'=2] {'y'}", "mesh['x'=2], device_ids=(0,0) {'x'}"],
)
def test_groups_of_a_broadcast_that_are_none_are_refused_with_their_place(groups: str) -> None:
    with pytest.raises(XlaEmittersError, match="replica_groups=") as raised:
        op_of(f"f32[8] collective-broadcast(x), replica_groups={groups}", "")
    assert raised.value.place is not None


@pytest.mark.parametrize(("groups", "header"), [("{{2,0}}", R4), ("{{1,3},{2}}", R4), ("{}", R4)])
def test_groups_of_a_broadcast_may_leave_devices_out(groups: str, header: str) -> None:
    """They keep zeros, as in XLA."""
    found = op_of(f"f32[8] collective-broadcast(x), replica_groups={groups}", header)
    said = {"{{2,0}}": ((2, 0),), "{{1,3},{2}}": ((1, 3), (2,)), "{}": ((0, 1, 2, 3),)}
    assert groups_of(found) == said[groups]


@pytest.mark.parametrize("pairs", ["{{0,-1}}", "{{-2,0}}", "{{0,1},{1,-1}}"])
def test_pairs_of_a_permute_name_devices(pairs: str) -> None:
    with pytest.raises(XlaEmittersError, match="source_target_pairs= names devices") as raised:
        op_of(f"f32[8] collective-permute(x), source_target_pairs={pairs}", R2P2)
    assert raised.value.place is not None


def test_a_group_beyond_what_the_module_is_for() -> None:
    text = """HloModule m, num_partitions=2
ENTRY main { x = f32[8] parameter(0)
  ROOT p = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,5}} }"""
    with pytest.raises(
        DataError, match="%p = collective-permute names device 5, but the module is for 2 devices"
    ) as raised:
        devices_of(parse_hlo(text))
    assert raised.value.place.line == 3


@pytest.mark.parametrize(
    ("header", "pair"),
    [
        ("num_partitions=10000000000", "{0,1}"),
        ("replica_count=2000000, num_partitions=2000000", "{0,1}"),
        ("replica_count=1", "{0,10000000000}"),
    ],
)
def test_more_devices_than_there_can_be_are_refused_before_they_are_counted_up(header: str, pair: str) -> None:
    module = parse_hlo(f"""HloModule m, {header}
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY main {{ x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{{pair}}}
  ROOT r = f32[8] all-reduce(p), replica_groups={{}}, to_apply=add }}""")
    with pytest.raises(DataError, match="devices: at most 1048576 are possible"):
        devices_of(module)
