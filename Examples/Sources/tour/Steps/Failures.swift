import Alamofire
import HTTPTestServer

let failures = Step("What errors look like") { stage in
  let refusing = "http://127.0.0.1:\(try HTTPTestServer.refusedPort())/"
  try await fail(stage, "nobody listens", AF.request(refusing))

  let unknown = AF.request("http://nowhere.invalid/").transportOptions { $0.connectTimeout = .seconds(5) }
  try await fail(stage, "no such host", unknown)

  try await fail(stage, "no URL", AF.request("http://[::"))

  let strange = AF.request(stage.server.url("/get")) { $0.httpBody = Data("{}".utf8) }
  try await fail(stage, "a body with GET", strange)

  stage.server.enqueue(.closeAfterBody(bytes: 500))
  try await fail(stage, "the connection breaks", AF.request(stage.server.url("/half")))

  try await fail(stage, "JSON of another shape", AF.request(stage.server.url("/json")))
}

private struct Person: Decodable, Sendable {
  let name: String
}

/// Sends a request that must fail, and shows its error.
private func fail(_ stage: Stage, _ what: String, _ request: DataRequest) async throws {
  let response = await request.serializingDecodable(Person.self).response
  guard let error = response.error else { throw Surprise("This was to fail: \(what).") }
  stage.show(what, name(of: error))
  stage.explain(error.localizedDescription)
}

/// Returns the name of an error by its case, and by the code of its `URLError` if the network failed.
private func name(of error: AFError) -> String {
  switch error {
  case .invalidURL: "AFError.invalidURL"
  case .urlRequestValidationFailed: "AFError.urlRequestValidationFailed"
  case .responseSerializationFailed: "AFError.responseSerializationFailed"
  case .sessionTaskFailed(let failure as URLError): "URLError, code \(failure.code.rawValue)"
  default: "another AFError"
  }
}
