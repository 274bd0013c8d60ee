import Alamofire

// Samples of ValidationAndErrors.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private struct Problem: Codable, Sendable, Error {
  var title: String
}

private let url = "https://example.com/users/1"

private func show(_ value: Any) {}

private func validation() {
  let standard = AF.request(url).validate()

  let precise = AF.request(url)
    .validate(statusCode: [200, 404])
    .validate(contentType: ["application/json", "text/*"])
  show((standard, precise))
}

private func problems() {
  let request = AF.request(url).validate { _, response, data in
    guard response.statusCode >= 400 else { return .success(()) }
    let problem = data.flatMap { try? JSONDecoder().decode(Problem.self, from: $0) }
    return .failure(problem ?? Problem(title: "status \(response.statusCode)"))
  }
  show(request)
}

private func handling() async {
  let response = await AF.request(url).validate().serializingDecodable(User.self).response
  guard let error = response.error else { return }

  if error.responseCode == 404 {
    print("there is no such user")
  } else if let problem = error.underlyingError as? Problem {
    print(problem.title)
  } else if let failure = error.underlyingError as? URLError {
    print("the network failed: \(failure.code.rawValue)")
  } else if error.isResponseSerializationError, let data = response.data {
    print("not a user: \(String(decoding: data, as: UTF8.self))")
  } else {
    print(error.localizedDescription)
  }
}

private func catching() async {
  do {
    let user = try await AF.request(url).validate().serializingDecodable(User.self).value
    print(user.name)
  } catch {
    print(error.asAFError?.responseCode ?? 0)
  }
}
