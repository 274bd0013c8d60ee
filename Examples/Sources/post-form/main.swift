// Posts a form and prints the response of the server:
//
//     swift run post-form https://httpbin.org/post name=Ada born=1815

import Alamofire

let arguments = CommandLine.arguments.dropFirst()
guard let url = arguments.first, arguments.count > 1 else {
  try? FileHandle.standardError.write(contentsOf: Data("Usage: post-form URL name=value ...\n".utf8))
  exit(2)
}

var fields: [String: String] = [:]
for argument in arguments.dropFirst() {
  let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
  fields[String(parts[0])] = parts.count > 1 ? String(parts[1]) : ""
}

do {
  // To send JSON, add: encoder: JSONParameterEncoder.default
  let text = try await AF.request(url, method: .post, parameters: fields)
    .validate()
    .serializingString()
    .value
  print(text)
} catch {
  try? FileHandle.standardError.write(contentsOf: Data("\(error.localizedDescription)\n".utf8))
  exit(1)
}
