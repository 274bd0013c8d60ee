/// Stores a value in place of another one, which is returned.
///
/// Under a lock, an object of the caller is replaced in this way, and released after the lock: the code of its `deinit`
/// may use the object that the lock belongs to.
@inline(__always)
func replace<Value>(_ value: inout Value, with new: Value) -> Value {
  let old = value
  value = new
  return old
}
