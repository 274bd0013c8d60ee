extension ConnectionProfile {
  /// Whether servers are judged as every session judges them, and see nobody in particular: only then may a
  /// response be given to other sessions.
  package var isUsual: Bool { judge?.judgesAsUsual != false && TrustPartition.isUsual(options) }
}
