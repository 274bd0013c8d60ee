import Alamofire

// Samples of Uploads.md; see `SampleTests`.

private struct Reply: Codable, Sendable {
  var id: Int
}

private let url = "https://example.com/files"

private func show(_ value: Any) {}

private func sources(data: Data, fileURL: URL, stream: InputStream) {
  let first = AF.upload(data, to: url, headers: [.contentType("application/octet-stream")])
  let second = AF.upload(fileURL, to: url, method: .put)
  let third = AF.upload(stream, to: url)
  show((first, second, third))
}

private func sequence() {
  let lines = AsyncStream<Data> { continuation in
    for number in 1...3 { continuation.yield(Data("line \(number)\n".utf8)) }
    continuation.finish()
  }
  AF.upload(lines, to: "https://example.com/log").response { print($0.result) }
}

private func progress(fileURL: URL) async throws {
  let reply = try await AF.upload(fileURL, to: url)
    .uploadProgress(queue: .global()) { progress in print(progress.fractionCompleted) }
    .validate()
    .serializingDecodable(Reply.self)
    .value
  show(reply)
}

private func form(fileURL: URL, picture: Data) async throws {
  let reply = try await AF.upload(
    multipartFormData: { form in
      form.append(Data("Ada Lovelace".utf8), withName: "author")
      form.append(fileURL, withName: "document")
      form.append(picture, withName: "picture", fileName: "ada.png", mimeType: "image/png")
    }, to: url
  )
  .validate()
  .serializingDecodable(Reply.self)
  .value
  show(reply)
}

private func encoding(fileURL: URL) throws {
  let form = MultipartFormData(boundary: "part")
  form.append(Data("1815".utf8), withName: "born")
  let body = try form.encode()
  try form.writeEncodedData(to: fileURL)
  show((form.contentType, body))
}

private struct Log: UploadableConvertible {
  var file: URL

  func createUploadable() throws -> UploadRequest.Uploadable {
    guard let stream = InputStream(url: file) else { throw CocoaError(.fileNoSuchFile) }
    return .stream(stream)
  }
}

private final class RunningDigest: Sendable {
  var contentDigest: String { "sha-256=::" }
  func add(_ chunk: Data) {}
}

private func trailers(chunks: AsyncStream<Data>) {
  let sum = RunningDigest()
  let body = chunks.map { chunk in
    sum.add(chunk)
    return chunk
  }
  AF.upload(body, to: "https://example.com/files")
    .trailers(announcing: ["Content-Digest"]) { ["Content-Digest": sum.contentDigest] }
    .response { print($0.result) }
}
