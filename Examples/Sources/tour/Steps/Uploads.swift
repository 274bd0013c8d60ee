import Alamofire
import HTTPTestServer

let uploads = Step("Uploads: a file, and a form") { stage in
  let file = FileManager.default.temporaryDirectory.appendingPathComponent("tour-\(UUID().uuidString)")
  try Data(count: 3_000_000).write(to: file)
  defer { try? FileManager.default.removeItem(at: file) }

  let sink = AF.upload(file, to: stage.server.url("/upload-sink"), method: .put)
  let answer = await sink.validate().serializingString().response
  if let error = answer.error { throw error }
  stage.show("PUT /upload-sink, from a file", "\(sink.uploadProgress.completedUnitCount) bytes")

  struct Echo: Decodable, Sendable {
    let form: [String: String]
    let files: [String: String]
  }
  let echo = try await AF.upload(
    multipartFormData: { form in
      form.append(Data("Ada".utf8), withName: "name")
      form.append(
        Data("To the engine!".utf8), withName: "letter", fileName: "letter.txt", mimeType: "text/plain")
    }, to: stage.server.url("/post")
  ).validate().serializingDecodable(Echo.self).value
  stage.show("the form's field", echo.form["name"] ?? "missing")
  stage.show("the form's file", echo.files["letter"] ?? "missing")
}
