import CCurl
import HTTPWire

// A server may close a connection at any moment between two requests (RFC 9112 §9.6), or refuse the
// streams that it did not get to (RFC 9113 §8.7). libcurl answers with another of its connections, but
// six times at most in the life of a handle: too few when the server has closed all of them at once.
extension Transfer {
  private static let mostRepeats = 3

  /// Whether the request may be sent once more after a failure: not a byte came back on a connection
  /// that was there already or that carries many requests, and it is safe to repeat (RFC 9110 §9.2.2)
  /// or never went out whole.
  func mayRepeat(after code: CURLcode) -> Bool {
    switch code {
    case CURLE_ABORTED_BY_CALLBACK: return hasMetLeftovers
    case CURLE_SEND_ERROR: break
    case CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2:
      guard isIdempotent else { return false }
    default: return false
    }
    guard failure == nil, !isClosed, assembly.head == nil, request?.body.isRepeatable != false else {
      return false
    }
    var facts = ccurl_facts()
    ccurl_read_facts(easy.raw, &facts)
    guard facts.header_bytes == 0, facts.downloaded == 0 else { return false }
    if code == CURLE_SEND_ERROR || code == CURLE_HTTP2, lane?.multiplexes == true {
      return repeats < Self.mostRepeats
    }
    return facts.new_connections == 0 && repeats == 0
  }

  /// Makes everything as it was before the request was sent. It gets a connection of its own, except on
  /// HTTP/2: there libcurl would have the others wait for it, and at times for ever.
  func prepareRepeat() {
    repeats += 1
    hasMetLeftovers = false
    setFresh(lane?.multiplexes != true)
    restartAssembly()
    body.clear()
    count.sent = 0
    errorText[0] = 0
  }

  /// Whether libcurl has to make a new connection.
  func setFresh(_ isFresh: Bool) {
    guard isFresh != applied.isFresh else { return }
    applied.isFresh = isFresh
    easy.set(CURLOPT_FRESH_CONNECT, isFresh)
  }

  /// Whether libcurl closes the connection behind the request.
  func setClosing(_ isClosing: Bool) {
    guard isClosing != applied.isClosing else { return }
    applied.isClosing = isClosing
    easy.set(CURLOPT_FORBID_REUSE, isClosing)
  }

  private var isIdempotent: Bool {
    switch request?.method {
    case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
    default: false
    }
  }
}
