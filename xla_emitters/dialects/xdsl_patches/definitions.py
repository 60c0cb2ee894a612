"""Ops whose definition in xDSL lacks a property, a type or a syntax that MLIR 22 has: completed in place, once.

    arith.shrsi %a, %b exact : i32                     xDSL has no `isExact`
    arith.extsi %v : vector<4xi32> to vector<4xi64>    xDSL takes integers alone
    scf.for unsigned %i = %lb to %ub step %s { }       xDSL has no `unsignedCmp`

One row per op lists the additions. The class stays the one that xDSL's passes and ours import, so `isinstance` still matches; only the
parts in a row are replaced: a type constraint by operand or result, a property, the declarative syntax, or a method. Checks of xDSL's
verifier beyond the fields are kept, unless the row has a `verify_`.

A pass that rebuilds one of these ops keeps `properties` as they are; a row's property is read by `op.properties.get("isExact")`.

`sample` is text that xDSL's own definition refuses or prints otherwise: a test detects by it that xDSL has caught up and the row can go.
Source: MLIR 22, the ops' definitions; docs/reference/3 section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import affine, arith, cf, gpu, memref, scf, vector
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    IndexType,
    IndexTypeConstr,
    IntegerAttr,
    IntegerType,
    ShapedType,
    StringAttr,
    UnitAttr,
    container_of,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    IRDLOption,
    OperandDef,
    OptPropertyDef,
    ParsePropInAttrDict,
    PropertyDef,
    ResultDef,
    base,
    eq,
)
from xdsl.irdl.declarative_assembly_format import CustomDirective
from xdsl.irdl.operations import OpDef, get_accessors_from_op_def
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from xla_emitters.dialects.xdsl_patches import syntax
from xla_emitters.dialects.xdsl_patches.patch import Patch, put


def _verify_select(self: arith.SelectOp) -> None:
    if isinstance(self.cond.type, ShapedType) and not have_compatible_shape(self.cond.type, self.result.type):
        raise VerifyException(f"{self.cond.type} and {self.result.type} differ in shape")


BOOL_LIKE = container_of(IntegerType(1))
INTEGER_LIKE = container_of(IntegerType)
INTEGERS = (INTEGER_LIKE, INTEGER_LIKE)
INTEGER_OR_INDEX_LIKE = container_of(IntegerType | IndexType)
FLOAT_LIKE = container_of(AnyFloat)


XDSLS_DEFINITIONS: dict[type[IRDLOperation], OpDef] = {}
"""The fields of each definition in xDSL."""


@dataclass(frozen=True)
class Row(Patch):
    """The parts of MLIR's definition of `op` that xDSL's lacks.

    why         what xDSL lacks, in words
    sample      a line of MLIR's text, or several; `%x: index`, `%i: i32`, `%f: f32` and the other values of `SAMPLE_ARGUMENTS` may be used
    types       operand or result -> the types that it takes
    properties  name -> definition
    syntax      the declarative one, in place of xDSL's
    methods     `parse`, `print`, `__init__`, `verify_` in place of xDSL's; `verify_` is what is checked beyond the fields
    """

    op: type[IRDLOperation]
    why: str
    sample: str
    types: Mapping[str, AttrConstraint] = field(default_factory=dict[str, AttrConstraint])
    properties: Mapping[str, PropertyDef] = field(default_factory=dict[str, PropertyDef])
    options: Sequence[IRDLOption] = ()
    directives: Sequence[type[CustomDirective]] = ()
    syntax: str | None = None
    methods: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def apply(self) -> None:
        definition = self.op.get_irdl_definition()
        XDSLS_DEFINITIONS[self.op] = replace(definition, accessor_names=definition.accessor_names.copy())
        definition.operands = [
            (name, OperandDef(self.types[name]) if name in self.types else operand)
            for name, operand in definition.operands
        ]
        definition.results = [
            (name, ResultDef(self.types[name]) if name in self.types else result) for name, result in definition.results
        ]
        definition.properties = definition.properties | dict(self.properties)
        for name in self.properties:
            definition.accessor_names[name] = (name, "property")
        definition.options = [*definition.options, *self.options]
        if self.syntax is not None:
            definition.assembly_format = self.syntax
            definition.custom_directives = {directive.__name__: directive for directive in self.directives}
        if "parse" in self.methods:
            definition.assembly_format = None
        made = get_accessors_from_op_def(definition, self.methods.get("verify_"))
        ours = {name: made[name] for name in ("parse", "print", *self.properties) if name in made} | dict(self.methods)
        if "verify_" in self.methods:
            ours["verify_"] = made["verify_"]
        for name, value in ours.items():
            put(self.op, name, value)


SAMPLE_ARGUMENTS = (
    "%x: index, %i: i32, %b: i1, %f: f32, %h: bf16, %iv: vector<4xi32>, %xv: vector<4xindex>, %bv: vector<4xi1>, "
    "%fv: vector<4xf32>, %t: tensor<64xf32>, %m: memref<64xf32>"
)


# ---- arith ------------------------------------------------------------------------------------------------------------------------------

_UNIT = OptPropertyDef(eq(UnitAttr()))
_FASTMATH = {"fastmath": OptPropertyDef(base(FastMathFlagsAttr))}


def _exact(op: type[IRDLOperation]) -> Row:
    """Adds `exact`: no set bit is shifted out, or the division has no remainder."""
    return Row(
        op,
        "has no isExact",
        f"%r = {op.name} %i, %i exact : i32",
        properties={"isExact": _UNIT},
        syntax="$lhs `,` $rhs (`exact` $isExact^)? attr-dict `:` type($result)",
    )


def _element_bits(value_type: Attribute) -> int:
    element = get_element_type_or_self(value_type)
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 0


def _verify_cast(self: Any) -> None:
    if not have_compatible_shape(self.input.type, self.result.type):
        raise VerifyException(f"{self.input.type} and {self.result.type} differ in shape")


def _verify_widening(self: Any) -> None:
    _verify_cast(self)
    if _element_bits(self.result.type) <= _element_bits(self.input.type):
        raise VerifyException(f"{self.result.type} is not wider than {self.input.type}")


def _verify_narrowing(self: Any) -> None:
    _verify_cast(self)
    if _element_bits(self.result.type) >= _element_bits(self.input.type):
        raise VerifyException(f"{self.result.type} is not narrower than {self.input.type}")


def verify_index_cast(self: Any) -> None:
    """One side's elements are indices, the other's integers."""
    _verify_cast(self)
    sides = [isinstance(get_element_type_or_self(value.type), IndexType) for value in (self.input, self.result)]
    if sides[0] == sides[1]:
        raise VerifyException(f"casts between index and integers, not {self.input.type} to {self.result.type}")


def _cast(
    op: type[IRDLOperation],
    sample: str,
    source: AttrConstraint,
    result: AttrConstraint,
    verify_: Callable[[Any], None],
    properties: Mapping[str, PropertyDef] | None = None,
    flags: str = "",
    directives: Sequence[type[CustomDirective]] = (),
    why: str = "takes no vectors",
) -> Row:
    """A conversion of numbers, or of vectors and tensors of them; `flags` is the syntax of `properties`."""
    return Row(
        op,
        why,
        sample,
        types={"input": source, "result": result},
        properties=properties or {},
        directives=directives,
        syntax=f"$input {flags} attr-dict `:` type($input) `to` type($result)",
        methods={"verify_": verify_},
    )


_OVERFLOW = PropertyDef(base(IntegerOverflowAttr), IntegerOverflowAttr("none"))
_ROUNDING = OptPropertyDef(IntegerAttr.constr(type=eq(i32)))

_ARITH = (
    *(_exact(op) for op in (arith.ShRSIOp, arith.ShRUIOp, arith.DivSIOp, arith.DivUIOp)),
    Row(
        arith.CmpiOp,
        "gives one i1 for vectors, reads no attributes",
        "%r = arith.cmpi slt, %iv, %iv {note} : vector<4xi32>",
        types={"result": BOOL_LIKE},
        methods={
            "__init__": syntax.init_cmpi,
            "parse": classmethod(syntax.parse_comparison),
            "print": syntax.print_comparison,
        },
    ),
    Row(
        arith.CmpfOp,
        "gives one i1 for vectors, reads no attributes",
        "%r = arith.cmpf olt, %fv, %fv fastmath<nnan> {note} : vector<4xf32>",
        types={"result": BOOL_LIKE},
        methods={
            "__init__": syntax.init_cmpf,
            "parse": classmethod(syntax.parse_comparison),
            "print": syntax.print_comparison,
        },
    ),
    Row(
        arith.SelectOp,
        "takes one i1 for vectors, reads no attributes",
        "%r = arith.select %bv, %fv, %fv {note} : vector<4xi1>, vector<4xf32>",
        types={"cond": BOOL_LIKE},
        methods={"parse": classmethod(syntax.parse_select), "print": syntax.print_select, "verify_": _verify_select},
    ),
    _cast(arith.ExtSIOp, "%r = arith.extsi %iv : vector<4xi32> to vector<4xi64>", *INTEGERS, _verify_widening),
    _cast(arith.ExtUIOp, "%r = arith.extui %bv : vector<4xi1> to vector<4xi32>", *INTEGERS, _verify_widening),
    _cast(
        arith.TruncIOp,
        "%r = arith.trunci %iv overflow<nsw> : vector<4xi32> to vector<4xi8>",
        *INTEGERS,
        _verify_narrowing,
        {"overflowFlags": _OVERFLOW},
        "(`overflow` `` $overflowFlags^)?",
    ),
    _cast(
        arith.ExtFOp,
        "%r = arith.extf %h fastmath<nnan> : bf16 to f32",
        FLOAT_LIKE,
        FLOAT_LIKE,
        _verify_widening,
        _FASTMATH,
        "(`fastmath` `` $fastmath^)?",
    ),
    _cast(
        arith.TruncFOp,
        "%r = arith.truncf %f toward_zero fastmath<nnan> : f32 to bf16",
        FLOAT_LIKE,
        FLOAT_LIKE,
        _verify_narrowing,
        {"roundingmode": _ROUNDING, **_FASTMATH},
        "custom<RoundingMode>($roundingmode) (`fastmath` `` $fastmath^)?",
        (syntax.RoundingMode,),
        "takes no vectors, rounding or fastmath",
    ),
    *(
        _cast(op, f"%r = {op.name} %iv : vector<4xi32> to vector<4xf32>", INTEGER_LIKE, FLOAT_LIKE, _verify_cast)
        for op in (arith.SIToFPOp, arith.UIToFPOp)
    ),
    *(
        _cast(op, f"%r = {op.name} %fv : vector<4xf32> to vector<4xi32>", FLOAT_LIKE, INTEGER_LIKE, _verify_cast)
        for op in (arith.FPToSIOp, arith.FPToUIOp)
    ),
    _cast(
        arith.IndexCastOp,
        "%r = arith.index_cast %xv : vector<4xindex> to vector<4xi32>",
        INTEGER_OR_INDEX_LIKE,
        INTEGER_OR_INDEX_LIKE,
        verify_index_cast,
    ),
)

# ---- scf, cf, affine --------------------------------------------------------------------------------------------------------------------

_CONTROL = (
    Row(
        scf.ForOp,
        "has no unsignedCmp",
        "scf.for unsigned %k = %x to %x step %x {\n }",
        properties={"unsignedCmp": _UNIT},
        methods={"parse": classmethod(syntax.parse_for), "print": syntax.print_for},
    ),
    Row(
        scf.ParallelOp,
        "has the generic form alone",
        "scf.parallel (%k) = (%x) to (%x) step (%x) {\n }",
        methods={"parse": classmethod(syntax.parse_parallel), "print": syntax.print_parallel},
    ),
    Row(
        scf.WhileOp,
        "reads no loop without values",
        "scf.while : () -> () {\n scf.condition(%b)\n } do {\n scf.yield\n }",
        methods={"parse": classmethod(syntax.parse_while), "print": syntax.print_while},
    ),
    Row(
        scf.IndexSwitchOp,
        "reads no default region that is empty",
        "scf.index_switch %x\n case 2 {\n scf.yield\n }\n default {\n }",
        methods={"parse": classmethod(syntax.parse_index_switch)},
    ),
    Row(
        scf.ExecuteRegionOp,
        "has no no_inline",
        "scf.execute_region no_inline {\n scf.yield\n }",
        properties={"no_inline": _UNIT},
        methods={"parse": classmethod(syntax.parse_execute_region), "print": syntax.print_execute_region},
    ),
    Row(
        scf.IfOp,
        "wants the type of one result in parentheses",
        "%r = scf.if %b -> f32 {\n scf.yield %f : f32\n } else {\n scf.yield %f : f32\n }",
        methods={"parse": classmethod(syntax.parse_if)},
    ),
    Row(
        cf.ConditionalBranchOp,
        "has no weights",
        "cf.cond_br %b weights([1, 2000]), ^bb1, ^bb1\n^bb1:",
        properties={"branch_weights": OptPropertyDef(DenseArrayBase.constr(i32))},
        syntax="$cond (`weights` `(` $branch_weights^ `)`)? `,`"
        "$then_block (`(` $then_arguments^ `:` type($then_arguments) `)`)? `,`"
        "$else_block (`(` $else_arguments^ `:` type($else_arguments) `)`)? attr-dict",
    ),
    *(
        Row(
            op,
            "reads no attributes behind the values",
            f"%r = {op.name} affine_map<(d0) -> (d0)>(%x) {{note}}",
            methods={"parse": classmethod(syntax.parse_map_op), "print": syntax.print_map_op},
        )
        for op in (affine.ApplyOp, affine.MinOp)
    ),
)

# ---- vector, memref ---------------------------------------------------------------------------------------------------------------------

_ALIGNMENT = {"alignment": OptPropertyDef(IntegerAttr.constr(type=eq(i64)))}
_VECTOR_TYPES = "memref<64xf32>, vector<4xi1>, vector<4xf32>"


def _aligned(op: type[IRDLOperation], sample: str) -> Row:
    """An access to memory with an alignment in bytes."""
    has_option = any(isinstance(option, ParsePropInAttrDict) for option in op.get_irdl_definition().options)
    return Row(
        op, "has no alignment", sample, properties=_ALIGNMENT, options=() if has_option else (ParsePropInAttrDict(),)
    )


_MEMORY = (
    _aligned(vector.LoadOp, "%r = vector.load %m[%x] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>"),
    _aligned(vector.StoreOp, "vector.store %fv, %m[%x] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>"),
    _aligned(
        vector.MaskedLoadOp,
        f"%r = vector.maskedload %m[%x], %bv, %fv {{alignment = 16 : i64}} : {_VECTOR_TYPES} into vector<4xf32>",
    ),
    _aligned(vector.MaskedStoreOp, f"vector.maskedstore %m[%x], %bv, %fv {{alignment = 16 : i64}} : {_VECTOR_TYPES}"),
    *(
        Row(op, "reads only some attributes", sample, methods={"parse": classmethod(syntax.parse_transfer)})
        for op, sample in (
            (vector.TransferReadOp, "%r = vector.transfer_read %t[%x], %f {note} : tensor<64xf32>, vector<4xf32>"),
            (vector.TransferWriteOp, "%r = vector.transfer_write %fv, %t[%x] {note} : vector<4xf32>, tensor<64xf32>"),
        )
    ),
    _aligned(memref.LoadOp, "%r = memref.load %m[%x] {alignment = 4 : i64} : memref<64xf32>"),
    _aligned(memref.StoreOp, "memref.store %f, %m[%x] {alignment = 4 : i64} : memref<64xf32>"),
    Row(
        memref.AtomicRMWOp,
        "writes the number of the kind, not its word",
        "%r = memref.atomic_rmw addf %f, %m[%x] : (f32, memref<64xf32>) -> f32",
        directives=(syntax.AtomicKind,),
        syntax="custom<AtomicKind>($kind) $value `,` $memref `[` $indices `]` attr-dict"
        " `:` `(` type($value) `,` type($memref) `)` `->` type($result)",
    ),
    Row(
        memref.RankOp,
        "has the generic form alone",
        "%r = memref.rank %m : memref<64xf32>",
        syntax="$source attr-dict `:` type($source)",
    ),
    Row(
        memref.CastOp,
        "has the generic form alone",
        "%r = memref.cast %m : memref<64xf32> to memref<?xf32>",
        syntax="$source attr-dict `:` type($source) `to` type($dest)",
    ),
    Row(
        memref.MemorySpaceCastOp,
        "has the generic form alone",
        "%r = memref.memory_space_cast %m : memref<64xf32> to memref<64xf32, 1>",
        syntax="$source attr-dict `:` type($source) `to` type($dest)",
    ),
    Row(
        memref.CopyOp,
        "has the generic form alone",
        "memref.copy %m, %m : memref<64xf32> to memref<64xf32>",
        syntax="$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
    ),
    Row(
        memref.ExtractAlignedPointerAsIndexOp,
        "has the generic form alone",
        "%r = memref.extract_aligned_pointer_as_index %m : memref<64xf32> -> index",
        syntax="$source attr-dict `:` type($source) `->` type($aligned_pointer)",
    ),
)

# ---- gpu --------------------------------------------------------------------------------------------------------------------------------

_UPPER_BOUND = {"upper_bound": OptPropertyDef(IntegerAttr.constr(type=IndexTypeConstr))}


def _index(op: type[IRDLOperation], words: str, parse: Any, printed: Any) -> Row:
    """A number provided by the hardware, with an exclusive upper bound."""
    return Row(
        op,
        "has no upper_bound, and the generic form alone",
        f"%r = {op.name} {words}",
        properties=_UPPER_BOUND,
        methods={"parse": classmethod(parse), "print": printed},
    )


_GPU = (
    *(
        _index(op, "x upper_bound 64", syntax.parse_dimension, syntax.print_dimension)
        for op in (gpu.ThreadIdOp, gpu.BlockIdOp, gpu.BlockDimOp, gpu.GridDimOp, gpu.GlobalIdOp)
    ),
    *(
        _index(op, "upper_bound 64 : index", syntax.parse_typed, syntax.print_typed)
        for op in (gpu.NumSubgroupsOp, gpu.SubgroupIdOp, gpu.SubgroupSizeOp)
    ),
    _index(gpu.LaneIdOp, "upper_bound 64", syntax.parse_bare, syntax.print_bare),
    Row(
        gpu.BarrierOp,
        "has the generic form alone",
        "gpu.barrier",
        methods={"parse": classmethod(syntax.parse_bare), "print": syntax.print_bare},
    ),
)

# At module level, unlike the other samples.
GLOBAL = Row(
    memref.GlobalOp,
    "has no alignment of its own, and needs a visibility and a value",
    'memref.global "private" constant @g : memref<4xf32> = dense<1.0> {alignment = 64 : i64}\nmemref.global @x : memref<4xf32>',
    properties={
        "sym_visibility": OptPropertyDef(base(StringAttr)),
        "initial_value": OptPropertyDef(base(UnitAttr) | base(DenseIntOrFPElementsAttr)),
    },
    methods={"parse": classmethod(syntax.parse_global), "print": syntax.print_global},
)

ROWS: tuple[Row, ...] = (*_ARITH, *_CONTROL, *_MEMORY, *_GPU, GLOBAL)
