import CCurl
import HTTPWire

// The bytes of a request on its connection, for observers. libcurl reports them while `CURLOPT_VERBOSE` is set, which
// costs time. It is set for observed requests only.
extension Transfer {
  /// Prepares for the bytes of the attempt that libcurl is about to make.
  func beginWire() {
    guard request?.wireObserver != nil else { return }
    attempts.sentHead = []
    setVerbose(true)
  }

  /// Receives what libcurl reports: a message about the transfer, or bytes that it has sent or received.
  func reportReceived(_ kind: curl_infotype, _ bytes: UnsafeRawBufferPointer) {
    if kind == CURLINFO_TEXT { return messageReceived(bytes) }
    guard let observer = request?.wireObserver else { return }
    switch kind {
    case CURLINFO_HEADER_OUT:
      attempts.sentHead += bytes
      observer.bytesMoved(.requestHead, bytes)
    case CURLINFO_DATA_OUT: observer.bytesMoved(.requestBody, bytes)
    case CURLINFO_HEADER_IN: observer.bytesMoved(.responseHead, bytes)
    case CURLINFO_DATA_IN: observer.bytesMoved(.responseBody, bytes)
    default: break
    }
  }

  /// The head of the last request that was sent, if it was observed.
  var sentHead: String? {
    attempts.sentHead.isEmpty ? nil : String(decoding: attempts.sentHead, as: UTF8.self)
  }
}
