import FoundationEssentials
import HTTPWire

/// Routes with fixed documents in several formats and codings.
extension Routes {
  var formats: Routes {
    adding("/json", methods: ["GET"]) { _, _ in .json(Self.slideshow) }
      .adding("/html", methods: ["GET"]) { _, _ in Self.document(Self.html, "text/html; charset=utf-8") }
      .adding("/xml", methods: ["GET"]) { _, _ in Self.document(Self.xml, "application/xml") }
      .adding("/encoding/utf8", methods: ["GET"]) { _, _ in
        Self.document(Self.manyScripts, "text/html; charset=utf-8")
      }
      .adding("/image/png", methods: ["GET"]) { _, _ in
        Reply(headers: [.contentType("image/png")], body: .bytes(Self.png))
      }
      .adding("/gzip", methods: ["GET"]) { request, _ in
        Self.coded(request, "gzipped", "gzip", Compression.gzip)
      }
      .adding("/deflate", methods: ["GET"]) { request, _ in
        Self.coded(request, "deflated", "deflate", Compression.zlib)
      }
  }

  private static func document(_ text: String, _ type: String) -> Reply {
    Reply(headers: [.contentType(type)], body: .bytes(Array(text.utf8)))
  }

  private static func coded(
    _ request: RecordedRequest, _ flag: String, _ coding: String, _ compress: ([UInt8]) -> [UInt8]
  ) -> Reply {
    let document = JSONValue.object([
      (flag, .bool(true)), ("headers", EchoDocument(request).headers),
      ("method", .string(request.method)), ("origin", .string("127.0.0.1")),
    ])
    return Reply(
      headers: [.contentType("application/json"), .contentEncoding(coding)],
      body: .bytes(compress(Array(document.text.utf8))))
  }

  private static let slideshow = """
    {"slideshow": {"author": "Ada Lovelace", "date": "2026-01-01", "slides": [{"title": "Engines", \
    "type": "all"}, {"items": ["mills", "stores"], "title": "Overview", "type": "all"}], \
    "title": "Sample"}}
    """

  private static let html = """
    <!DOCTYPE html>
    <html>
      <head><meta charset="utf-8"><title>A page</title></head>
      <body><h1>A page</h1><p>It says nothing, in a few words.</p></body>
    </html>

    """

  private static let xml = """
    <?xml version="1.0" encoding="UTF-8"?>
    <slideshow title="Sample" date="2026-01-01" author="Ada Lovelace">
      <slide type="all"><title>Engines</title></slide>
    </slideshow>

    """

  private static let manyScripts = """
    <h1>Many scripts</h1>
    <p>Grüße, Ελλάδα, Россия, שלום, سلام, नमस्ते, 你好, こんにちは, 안녕, ∮ E⋅da = Q, 👩‍🚀</p>

    """

  /// One pixel.
  private static let png = [UInt8](
    Data(
      base64Encoded: """
        iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP438AAAAQBAYD718vxAAAAAElFTkSuQmCC
        """) ?? Data())
}
