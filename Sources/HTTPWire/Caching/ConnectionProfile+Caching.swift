extension ConnectionProfile {
  private static let usualPartition = TrustPartition.number(of: TransportOptions())

  /// Whether servers are judged as every session judges them, and see nobody in particular: only then may a
  /// response be given to other sessions.
  package var isUsual: Bool { judge == nil && partition == Self.usualPartition }
}
