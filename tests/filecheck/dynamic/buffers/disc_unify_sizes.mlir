// RUN: xla-emitters-opt -p disc-unify-sizes %s | filecheck %s
// A size that a buffer says is the program's symbol is the value that has it already; another size, and what is inside a branch, stays.
func.func @main(%x: memref<?x4xf32> {disc.sizes = ["b", "4"]}, %list: memref<2xi32, "cpu">, %which: i32) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %x, %c0 : memref<?x4xf32>
  %l = memref.load %list[%c0] : memref<2xi32, "cpu">
  %n = arith.index_cast %l : i32 to index
  %y = memref.alloc(%n) {disc.sizes = ["b"]} : memref<?xf32>
  %k = memref.load %list[%c1] : memref<2xi32, "cpu">
  %m = arith.index_cast %k : i32 to index
  %z = memref.alloc(%m) {disc.sizes = ["c"]} : memref<?xf32>
  %both = arith.addi %m, %b : index
  %again = arith.addi %n, %m : index
  %w = memref.alloc(%again) : memref<?xf32>
  return %y : memref<?xf32>
}
// CHECK:         %b = memref.dim %x, %c0
// CHECK:         %y = memref.alloc(%b) {disc.sizes = ["b"]}
// CHECK:         %m = arith.index_cast %k : i32 to index
// CHECK-NEXT:    %z = memref.alloc(%m) {disc.sizes = ["c"]}
// CHECK-NEXT:    %both = arith.addi %m, %b : index
// CHECK-NEXT:    %w = memref.alloc(%both)
