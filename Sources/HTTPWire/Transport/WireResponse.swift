package import FoundationEssentials

/// What came back for one request, once.
package struct WireResponse: Sendable {
  package let head: ResponseHead
  /// The decoded body; `nil` when there was none or it was empty.
  package let body: Data?
  package let metrics: TransferMetrics

  package init(head: ResponseHead, body: Data?, metrics: TransferMetrics) {
    self.head = head
    self.body = body
    self.metrics = metrics
  }
}
