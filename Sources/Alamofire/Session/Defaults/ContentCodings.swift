/// The content codings (RFC 9110 §8.4.1) that a response may come in.
package enum ContentCodings {
  /// Those that are asked for by default, the best one first: what the engine at hand can decode. More
  /// of them (`zstd`) are decoded when they come, and can be asked for.
  package static let supported = ["br", "gzip", "deflate"].filter(Engine.contentCodings.contains)
}
