// Fetches a list of names and values as JSON and prints them:
//
//     swift run get-json https://httpbin.org/headers

import Alamofire

/// The response of httpbin to `/headers`. Write a type like this for the JSON of your own server.
struct Echo: Decodable, Sendable {
  let headers: [String: String]
}

guard let url = CommandLine.arguments.dropFirst().first else {
  FileHandle.standardError.write(Data("Usage: get-json URL\n".utf8))
  exit(2)
}

do {
  let echo = try await AF.request(url)
    .validate()  // throws an error for a status such as 404 and for a content type other than JSON
    .serializingDecodable(Echo.self)
    .value
  for (name, value) in echo.headers.sorted(by: { $0.key < $1.key }) { print("\(name): \(value)") }
} catch {
  FileHandle.standardError.write(Data("\(error.localizedDescription)\n".utf8))
  exit(1)
}
