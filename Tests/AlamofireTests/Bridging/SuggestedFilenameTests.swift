import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The name that a response suggests for its file, also in a file that imports FoundationNetworking.
@Suite("Suggested file names", .timeLimit(.minutes(5))) struct SuggestedFilenameTests {
  private let server: HTTPTestServer
  private let session = Session.real()

  init() throws { server = try HTTPTestServer() }

  private func name(_ path: String) async -> String? {
    let request = session.request(server.url(path))
    let response: HTTPURLResponse? = await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0.response) }
    }
    return response?.suggestedFilename
  }

  @Test("A response without Content-Disposition is named by the path of its URL")
  func path() async {
    #expect(await name("/bytes/20") == "20")
    #expect(await name("/bytes/20?name=/etc/passwd") == "20")
  }

  @Test("A response is named by its Content-Disposition")
  func disposition() async {
    let field = "/response-headers?Content-Disposition="
    #expect(await name(field + "attachment;%20filename=%22a%20b.txt%22") == "a b.txt")
    #expect(await name(field + "attachment;%20filename=a.txt;%20filename*=UTF-8''%25c3%25a4.txt") == "ä.txt")
    #expect(await name(field + "attachment;%20filename=%22../../evil.txt%22") == "evil.txt")
    #expect(await name(field + "attachment;%20filename=%22..%22") == "response-headers")
  }

  @Test("Downloads of different paths go to different files")
  func destinations() async throws {
    let folder = try TemporaryFolder()
    for count in [10, 20] {
      let destination: DownloadRequest.Destination = { temporary, response in
        (folder[response.suggestedFilename ?? temporary.lastPathComponent], [])
      }
      let request = session.download(server.url("/bytes/\(count)"), to: destination)
      let error: AFError? = await withCheckedContinuation { continuation in
        request.response(queue: .global()) { continuation.resume(returning: $0.error) }
      }
      #expect(error == nil)
    }
    #expect(try folder.names == ["10", "20"])
  }

  @Test("A response is copied, compared and archived as one of Foundation's")
  func copies() async throws {
    let request = session.request(server.url("/bytes/20"))
    let response: HTTPURLResponse? = await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0.response) }
    }
    let original = try #require(response)
    #expect((original.copy() as? HTTPURLResponse)?.suggestedFilename == "20")
    let data = try NSKeyedArchiver.archivedData(withRootObject: original, requiringSecureCoding: false)
    let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: HTTPURLResponse.self, from: data))
    #expect(read.url == original.url)
    #expect(read.statusCode == 200)
    #expect(read.suggestedFilename == "20")
  }
}
