/// A value of a user's own on its way to the core, whose closures are `Sendable`.
///
/// Unchecked, and the one place where it is: protocols and closures of the fourth generation knew nothing of
/// `Sendable`, and users' classes that stand behind them are guarded by users' own locks, or were handed over
/// for good. A value in here is called, and never changed by this module.
struct Boxed<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
