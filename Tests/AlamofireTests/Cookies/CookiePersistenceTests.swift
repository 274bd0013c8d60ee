import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

/// The shared storage outlives its process. Attributes that its file loses are restored.
@Suite("Cookies across processes", .timeLimit(.minutes(5)))
struct CookiePersistenceTests {
  @Test("Cookies outlive their process with all attributes", .steps) func persistence() async throws {
    let folder = try TemporaryFolder()
    let authority = folder.url.appendingPathComponent("authority.pem")
    try Data(TestIdentity.localhostAuthority.caPEM.utf8).write(to: authority)
    let secure = try HTTPTestServer(.tls(.localhost))
    let plain = try HTTPTestServer()
    let local = "http://localhost:\(plain.port)/"
    let load = { (urls: String...) in
      let complaints = folder.url.appendingPathComponent("complaints")
      let child = try ChildProcess(
        ["cookies", authority.path] + urls, folder: folder.url, complaints: complaints)
      #expect(await child.end() == .exited(0), "\(child.said)")
    }
    var first = Reply.text("ok")
    first.headers = (0..<6).map { HTTPHeader(name: "Set-Cookie", value: "c\($0)=1; Path=/; Max-Age=3600") }
    first.headers += [
      "secure=1; Path=/; Max-Age=3600; Secure; HttpOnly", "strict=1; Path=/; Max-Age=3600; SameSite=Strict",
      "session=1; Path=/", "ä=ö\t<&>; Path=/; Max-Age=3600",
    ].map { HTTPHeader(name: "Set-Cookie", value: $0) }
    secure.enqueue(first)
    step("process that stores")
    try await load(secure.url("/"), secure.url("/"))
    let cookies = (0..<6).map { "c\($0)=1" }
    let last = "ä=ö\t<&>"
    #expect(fields(of: secure) == [[], cookies + ["secure=1", "strict=1", "session=1", last]])

    step("process that reads")
    secure.forgetRequests()
    // The last request is redirected by another site.
    plain.enqueue(.text("ok"), .redirect(to: secure.url("/")))
    try await load(secure.url("/"), local, plain.url("/"))
    #expect(
      fields(of: secure) == [cookies + ["secure=1", "strict=1", last], cookies + ["secure=1", last]])
    #expect(fields(of: plain) == [cookies + ["strict=1", last], []])
  }

  private func fields(of server: HTTPTestServer) -> [[String]] {
    server.recordedRequests.map { $0.header("Cookie")?.components(separatedBy: "; ") ?? [] }
  }
}
