/// A request whose response is collected in memory. All its answers are the defaults.
final class DataKind: RequestKind {
  /// The kind of all data requests, because it has no state.
  static let shared = DataKind()
}
