// Fetches several URLs at once and prints a line for each when it has arrived:
//
//     swift run concurrent https://example.com https://example.org https://example.net

import Alamofire

let urls = Array(CommandLine.arguments.dropFirst())
guard !urls.isEmpty else {
  try? FileHandle.standardError.write(contentsOf: Data("Usage: concurrent URL ...\n".utf8))
  exit(2)
}

/// Returns a line for one URL: status, size and time, or the error.
func line(for url: String) async -> (text: String, isGood: Bool) {
  let response = await AF.request(url).serializingData(emptyResponseCodes: Set(200..<600)).response
  switch response.result {
  case .success(let data):
    let status = response.response?.statusCode ?? 0
    let milliseconds = Int((response.metrics?.taskInterval.duration ?? 0) * 1000)
    return ("\(status)  \(data.count) bytes  \(milliseconds) ms  \(url)", status < 400)
  case .failure(let error):
    return ("failed  \(url): \(error.localizedDescription)", false)
  }
}

let allAreGood = await withTaskGroup(of: (text: String, isGood: Bool).self) { group in
  for url in urls { group.addTask { await line(for: url) } }
  var allAreGood = true
  for await line in group {
    print(line.text)
    allAreGood = allAreGood && line.isGood
  }
  return allAreGood
}
exit(allAreGood ? 0 : 1)
