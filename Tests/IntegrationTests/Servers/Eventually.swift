/// Polls a condition that depends on another process. Returns whether it became true in time.
func eventually(
  within limit: Duration = .seconds(120), _ condition: () async throws -> Bool
) async rethrows -> Bool {
  let deadline = ContinuousClock.now + limit
  while true {
    if try await condition() { return true }
    guard ContinuousClock.now < deadline else { return false }
    try? await Task.sleep(for: .milliseconds(10))
  }
}
