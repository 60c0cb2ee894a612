"""The `gpu` dialect's modules, functions and launches.

    gpu.module @m [#nvvm.target<chip = "sm_90">] {
      gpu.func @k(%a: f32) workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>>) kernel
          attributes {known_block_size = array<i32: 128, 1, 1>} {
        gpu.return
      }
    }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n) threads(%tx, %ty, %tz) in (%lx = %n, %ly = %n, %lz = %n) {
      gpu.terminator
    }

Redefined because xDSL's ops have no custom syntax, no targets, and no workgroup or private buffers. After the function's arguments, its
entry block has an argument for each buffer of the block (`workgroup`), then one for each of the thread (`private`).
Source: MLIR 22, gpu dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.gpu import AsyncTokenType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    attr_def,
    operand_def,
    opt_attr_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.mlir.function_syntax import (
    parse_arguments,
    parse_signature,
    print_arguments,
    print_outputs,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

Attributions = tuple[list[Parser.Argument], "ArrayAttr[DictionaryAttr] | None"]
"""Buffers by name, and a dictionary for each, if any has one."""


def _parse_attributions(parser: Parser, keyword: str) -> Attributions:
    """`workgroup(%s: memref<32xf32, 3>)`, if it is there."""
    if parser.parse_optional_keyword(keyword) is None:
        return [], None
    names, _, dictionaries = parse_arguments(parser)
    return names, dictionaries


def _print_attributions(
    printer: Printer, keyword: str, buffers: Sequence[BlockArgument], dictionaries: ArrayAttr[DictionaryAttr] | None
) -> None:
    if buffers:
        printer.print_string(f" {keyword}")
        print_arguments(printer, buffers, dictionaries)


@op_definition
class ModuleOp(QuickOp):
    """See the file's head."""

    name = "gpu.module"

    body = region_def("single_block")
    sym_name = prop_def(SymbolNameConstraint())
    targets = opt_prop_def(ArrayAttr)
    offloadingHandler = opt_prop_def()

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable())

    def __init__(self, name: str | StringAttr, body: Region, targets: Sequence[Attribute] | None = None):
        super().__init__(
            properties={
                "sym_name": StringAttr(name) if isinstance(name, str) else name,
                "targets": None if targets is None else ArrayAttr(targets),
            },
            regions=[body],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ModuleOp:
        name = parser.parse_symbol_name()
        handler = None
        if parser.parse_optional_punctuation("<") is not None:
            handler = parser.parse_attribute()
            parser.parse_punctuation(">")
        targets = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_attribute)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        op = ModuleOp(name, body, targets)
        if handler is not None:
            op.properties["offloadingHandler"] = handler
        op.attributes |= attributes.data if attributes else {}
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.offloadingHandler is not None:
            printer.print_string(" <")
            printer.print_attribute(self.offloadingHandler)
            printer.print_string(">")
        if self.targets is not None:
            printer.print_string(" ")
            printer.print_attribute(self.targets)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


@op_definition
class FuncOp(QuickOp):
    """See the file's head. `known_block_size` and `known_grid_size`: the launch dimensions, if they are known."""

    name = "gpu.func"

    body = region_def()
    sym_name = attr_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    kernel = opt_attr_def(UnitAttr, attr_name="gpu.kernel")
    workgroup_attributions = opt_attr_def(IntegerAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    workgroup_attrib_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    private_attrib_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    known_block_size = opt_prop_def(DenseArrayBase.constr(i32))
    known_grid_size = opt_prop_def(DenseArrayBase.constr(i32))
    known_cluster_size = opt_prop_def(DenseArrayBase.constr(i32))

    KNOWN: ClassVar = ("known_block_size", "known_grid_size", "known_cluster_size")
    SIGNATURE: ClassVar = ("sym_name", "gpu.kernel", "workgroup_attributions")

    traits = traits_def(IsolatedFromAbove(), HasParent(ModuleOp), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        function_type: FunctionType,
        body: Region,
        kernel: bool = False,
        workgroup_attributions: int = 0,
        properties: dict[str, Attribute | None] | None = None,
    ):
        """`body` takes the arguments, then `workgroup_attributions` buffers of the block, then those of the thread."""
        super().__init__(
            properties={**(properties or {}), "function_type": function_type},
            attributes={
                "sym_name": StringAttr(name),
                "gpu.kernel": UnitAttr() if kernel else None,
                "workgroup_attributions": IntegerAttr(workgroup_attributions, i64),
            },
            regions=[body],
        )

    @property
    def buffers(self) -> tuple[Sequence[BlockArgument], Sequence[BlockArgument]]:
        """The buffers of the block, and those of a thread."""
        own = self.body.blocks[0].args[len(self.function_type.inputs) :]
        shared = self.workgroup_attributions.value.data if self.workgroup_attributions else 0
        return own[:shared], own[shared:]

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name().data
        signature = parse_signature(parser)
        workgroup, workgroup_attrs = _parse_attributions(parser, "workgroup")
        private, private_attrs = _parse_attributions(parser, "private")
        kernel = parser.parse_optional_keyword("kernel") is not None
        extra = parser.parse_optional_attr_dict_with_keyword(cls.SIGNATURE)
        attributes = dict(extra.data) if extra else {}
        properties: dict[str, Attribute | None] = {name: attributes.pop(name, None) for name in cls.KNOWN}
        body = parser.parse_region([*signature.names, *workgroup, *private])
        properties |= {
            "arg_attrs": signature.arg_attrs,
            "res_attrs": signature.res_attrs,
            "workgroup_attrib_attrs": workgroup_attrs,
            "private_attrib_attrs": private_attrs,
        }
        function_type = FunctionType.from_lists(signature.types, signature.outputs)
        op = FuncOp(name, function_type, body, kernel, len(workgroup), properties)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        inputs = self.body.blocks[0].args[: len(self.function_type.inputs)]
        print_arguments(printer, inputs, self.arg_attrs)
        print_outputs(printer, self.function_type.outputs.data, self.res_attrs)
        workgroup, private = self.buffers
        _print_attributions(printer, "workgroup", workgroup, self.workgroup_attrib_attrs)
        _print_attributions(printer, "private", private, self.private_attrib_attrs)
        if self.kernel is not None:
            printer.print_string(" kernel")
        known = {name: self.properties[name] for name in self.KNOWN if name in self.properties}
        printer.print_op_attributes(known | self.attributes, reserved_attr_names=self.SIGNATURE, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        if not self.body.blocks:
            raise VerifyException("has no body")
        inputs, types = self.function_type.inputs.data, self.body.blocks[0].arg_types
        if types[: len(inputs)] != inputs:
            raise VerifyException(f"takes {_listed(inputs)}, but its entry block {_listed(types)}")
        shared = self.workgroup_attributions.value.data if self.workgroup_attributions else 0
        if len(types) < len(inputs) + shared:
            raise VerifyException(f"has {shared} workgroup buffers, but its entry block {len(types)} arguments")
        if self.kernel is not None and self.function_type.outputs:
            raise VerifyException(f"a kernel has no results, but this has {_listed(self.function_type.outputs.data)}")


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


@op_definition
class ReturnOp(QuickOp):
    """`gpu.return %x : f32`"""

    name = "gpu.return"

    args = var_operand_def()

    assembly_format = "attr-dict ($args^ `:` type($args))?"

    traits = traits_def(IsTerminator(), HasParent(FuncOp))

    def __init__(self, operands: Sequence[SSAValue | Operation] = ()):
        super().__init__(operands=[operands])

    def verify_(self) -> None:
        function = self.parent_op()
        if isinstance(function, FuncOp) and self.args.types != function.function_type.outputs.data:
            wanted = _listed(function.function_type.outputs.data)
            raise VerifyException(f"returns {_listed(self.args.types)}, but the function gives {wanted}")


# ---- launches ---------------------------------------------------------------------------------------------------------------------------


@op_definition
class LaunchOp(QuickOp):
    """See the file's head: its body runs once per thread. The body takes block ids, thread ids, grid sizes, block sizes; for clusters ids
    and sizes; then buffers as a `gpu.func` does.
    """

    name = "gpu.launch"

    asyncDependencies = var_operand_def(AsyncTokenType)
    gridSizeX = operand_def(IndexType)
    gridSizeY = operand_def(IndexType)
    gridSizeZ = operand_def(IndexType)
    blockSizeX = operand_def(IndexType)
    blockSizeY = operand_def(IndexType)
    blockSizeZ = operand_def(IndexType)
    clusterSizeX = opt_operand_def(IndexType)
    clusterSizeY = opt_operand_def(IndexType)
    clusterSizeZ = opt_operand_def(IndexType)
    dynamicSharedMemorySize = opt_operand_def(i32)
    workgroup_attributions = opt_attr_def(IntegerAttr)
    asyncToken = opt_result_def(AsyncTokenType)
    body = region_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        grid: Sequence[SSAValue | Operation],
        block: Sequence[SSAValue | Operation],
        body: Region,
        cluster: Sequence[SSAValue | Operation] = (),
        shared_bytes: SSAValue | Operation | None = None,
        workgroup_attributions: int = 0,
    ):
        """`grid`, `block` and `cluster` are three sizes each; the last may be missing."""
        sizes = [[size] for size in cluster] or [[], [], []]
        super().__init__(
            operands=[[], *grid, *block, *sizes, shared_bytes],
            attributes={"workgroup_attributions": IntegerAttr(workgroup_attributions, i64)},
            result_types=[None],
            regions=[body],
        )

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        clusters: _Dimensions = ([], [], [])
        if parser.parse_optional_keyword("clusters") is not None:
            clusters = _parse_dimensions(parser)
        parser.parse_keyword("blocks")
        blocks = _parse_dimensions(parser)
        parser.parse_keyword("threads")
        threads = _parse_dimensions(parser)
        shared_bytes = None
        if parser.parse_optional_keyword("dynamic_shared_memory_size") is not None:
            shared_bytes = parser.parse_operand(i32)
        workgroup, _ = _parse_attributions(parser, "workgroup")
        private, _ = _parse_attributions(parser, "private")
        ids = [*blocks[0], *threads[0], *blocks[1], *threads[1], *clusters[0], *clusters[1]]
        arguments = [name.resolve(IndexType()) for name in ids]
        body = parser.parse_region([*arguments, *workgroup, *private])
        grid, block, cluster = (
            [parser.resolve_operand(size, IndexType()) for size in sizes] for _, _, sizes in (blocks, threads, clusters)
        )
        op = LaunchOp(grid, block, body, cluster, shared_bytes, len(workgroup))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        arguments = self.body.blocks[0].args
        clusters = [size for size in (self.clusterSizeX, self.clusterSizeY, self.clusterSizeZ) if size is not None]
        grid, block = (
            (self.gridSizeX, self.gridSizeY, self.gridSizeZ),
            (self.blockSizeX, self.blockSizeY, self.blockSizeZ),
        )
        if clusters:
            _print_dimensions(printer, "clusters", arguments[12:15], arguments[15:18], clusters)
        _print_dimensions(printer, "blocks", arguments[0:3], arguments[6:9], grid)
        _print_dimensions(printer, "threads", arguments[3:6], arguments[9:12], block)
        if self.dynamicSharedMemorySize is not None:
            printer.print_string(" dynamic_shared_memory_size ")
            printer.print_ssa_value(self.dynamicSharedMemorySize)
        buffers = arguments[18 if clusters else 12 :]
        shared = self.workgroup_attributions.value.data if self.workgroup_attributions else 0
        _print_attributions(printer, "workgroup", buffers[:shared], None)
        _print_attributions(printer, "private", buffers[shared:], None)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, reserved_attr_names=("workgroup_attributions",))

    def verify_(self) -> None:
        if not self.body.blocks or not self.body.blocks[0].ops:
            raise VerifyException("has no body")
        count = 12 if self.clusterSizeX is None else 18
        types = self.body.blocks[0].arg_types
        if types[:count] != (IndexType(),) * count:
            raise VerifyException(f"its body takes {count} indices first, not {_listed(types[:count])}")


_Dimensions = tuple[list[Parser.UnresolvedArgument], list[Parser.UnresolvedArgument], list[UnresolvedOperand]]
"""Names of three ids, names of three sizes, and the values of these sizes."""


def _parse_dimensions(parser: Parser) -> _Dimensions:
    """`(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)`"""

    def name() -> Parser.UnresolvedArgument:
        return parser.parse_argument(expect_type=False)

    def size() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        extent = name()
        parser.parse_punctuation("=")
        return extent, parser.parse_unresolved_operand()

    start = parser.pos
    ids = parser.parse_comma_separated_list(parser.Delimiter.PAREN, name)
    parser.parse_keyword("in")
    sizes = parser.parse_comma_separated_list(parser.Delimiter.PAREN, size)
    if len(ids) != 3 or len(sizes) != 3:
        parser.raise_error("three ids and three sizes are expected", start, parser.pos)
    return ids, [extent for extent, _ in sizes], [value for _, value in sizes]


def _print_dimensions(
    printer: Printer,
    keyword: str,
    ids: Sequence[BlockArgument],
    sizes: Sequence[BlockArgument],
    values: Sequence[SSAValue],
) -> None:
    printer.print_string(f" {keyword}(")
    printer.print_list(ids, printer.print_ssa_value)
    printer.print_string(") in (")
    for position, (size, value) in enumerate(zip(sizes, values, strict=True)):
        printer.print_string(", " if position else "")
        printer.print_ssa_value(size)
        printer.print_string(" = ")
        printer.print_ssa_value(value)
    printer.print_string(")")


@op_definition
class TerminatorOp(QuickOp):
    """`gpu.terminator`: ends the body of a launch."""

    name = "gpu.terminator"

    assembly_format = "attr-dict"

    traits = traits_def(IsTerminator(), HasParent(LaunchOp))

    def __init__(self):
        super().__init__()
