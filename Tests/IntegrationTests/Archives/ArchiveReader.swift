import Foundation

/// A third-party reader of HTTP archives: the package `haralyzer` of Python in `.build/venv`.
enum ArchiveReader {
  /// An entry as the reader understands it.
  struct Entry: Decodable, Equatable {
    var request: String
    var requestType: String?
    var requestBody: String?
    var host: String
    var query: [[String]]
    var response: String
    var responseType: String
    var responseBody: String?
    var redirect: String
    var address: String
    /// Whether the start has a time zone, the phases add up to the time, and there is a port.
    var isConsistent: Bool
  }

  static func entries(of archive: URL) async throws -> [Entry] {
    let run = try await CommandRun([PythonEnvironment.program, "-I", "-c", script, archive.path])
    guard run.status == 0 else {
      throw ServerFailure(description: "haralyzer does not read it:\n\(run.errors)")
    }
    return try JSONDecoder().decode([Entry].self, from: run.output)
  }

  private static let script = """
    import json, sys
    from haralyzer import HarParser

    with open(sys.argv[1], encoding='utf-8') as file:
        parser = HarParser(json.load(file))
    assert parser.version == '1.2' and parser.creator['name'] == 'Alamofire'
    entries = []
    for entry in (entry for page in parser.pages for entry in page.entries):
        request, response = entry.request, entry.response
        phases = sum(max(0, entry.timings[name]) for name in ('blocked', 'dns', 'connect', 'send', 'wait', 'receive'))
        entries.append({
            'request': f'{request.method} {request.url} {request.httpVersion}',
            'requestType': request.mimeType, 'requestBody': request.text, 'host': request.host,
            'query': [[item['name'], item['value']] for item in request.queryString],
            'response': f'{response.httpVersion} {response.status}', 'responseType': response.mimeType,
            'responseBody': response.raw_entry['content'].get('text'), 'redirect': response.redirectURL,
            'address': entry.serverAddress,
            'isConsistent': entry.startTime.tzinfo is not None and abs(phases - entry.time) < 0.01 and entry.port > 0})
    json.dump(entries, sys.stdout)
    """
}
