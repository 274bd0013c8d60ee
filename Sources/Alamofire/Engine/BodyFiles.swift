import HTTPEngine
package import HTTPWire

/// Files that bodies come from and go to.
package enum BodyFiles {
  /// A file that is sent. Throws when it is not there, or no regular file.
  package static func source(path: String) throws(TransportFailure) -> any BodySource {
    try FileSource(path: path)
  }

  /// A file that a response is written to; `offset` tells where its bytes begin.
  package static func sink(
    path: String, offset: @escaping @Sendable (ResponseHead) -> Result<Int64, TransportFailure>
  ) -> any FileBodySink {
    FileSink(path: path, continuing: offset)
  }
}

/// A file that is written.
package protocol FileBodySink: BodySink {
  /// How many bytes it holds.
  var size: Int64 { get }
}

extension FileSink: FileBodySink {}
