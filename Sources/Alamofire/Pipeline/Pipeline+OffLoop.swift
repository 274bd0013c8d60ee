extension Pipeline {
  /// The only way in which code of a user is called: never on the engine's thread, where it would hold
  /// up every other transfer of the session.
  nonisolated(nonsending) func offLoop<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async
    -> Value
  {
    guard core.session.isOnLoop() else { return await body() }
    return await withTaskExecutorPreference(globalConcurrentExecutor) { await body() }
  }
}
