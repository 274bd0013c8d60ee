/// The content codings (RFC 9110 §8.4.1) that a response may come in.
package enum ContentCodings {
  /// Those that are asked for by default, the best one first.
  package static let supported = ["br", "gzip", "deflate"]
}
