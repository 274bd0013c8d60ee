import Alamofire
import Testing

struct DefaultHeadersTests {
  @Test("The default fields stand in their fixed order")
  func order() {
    #expect(HTTPHeaders.default.map(\.name) == ["Accept-Encoding", "Accept-Language", "User-Agent"])
    #expect(HTTPHeaders.default[0] == .defaultAcceptEncoding)
    #expect(HTTPHeaders.default[1] == .defaultAcceptLanguage)
    #expect(HTTPHeaders.default[2] == .defaultUserAgent)
  }

  @Test("Qualities fall by a tenth")
  func qualities() {
    #expect(HTTPHeader.ranked(["br", "gzip", "deflate"]) == "br;q=1.0, gzip;q=0.9, deflate;q=0.8")
    #expect(HTTPHeader.ranked(["gzip", "deflate"]) == "gzip;q=1.0, deflate;q=0.9")
    #expect(
      HTTPHeader.ranked(["a", "b", "c", "d", "e", "f"])
        == "a;q=1.0, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5")
    #expect(HTTPHeader.ranked((0..<12).map(String.init)).hasSuffix("9;q=0.1, 10;q=0.1, 11;q=0.1"))
    #expect(HTTPHeader.ranked([]) == "")
  }

  @Test("The content codings are those that the engine decodes")
  func codings() {
    #expect(HTTPHeader.defaultAcceptEncoding.value == HTTPHeader.ranked(ContentCodings.supported))
  }

  @Test("The languages are at most six of the user's")
  func languages() {
    let languages = HTTPHeader.defaultAcceptLanguage.value.split(separator: ", ")
    #expect((1...6).contains(languages.count))
    #expect(languages.first?.hasSuffix(";q=1.0") == true)
  }

  @Test("The agent names this program, the system and this library")
  func agentOfThisProcess() {
    let agent = HTTPHeader.defaultUserAgent.value
    #expect(agent.hasSuffix(") Alamofire/\(AFInfo.version)"))
    #expect(agent.contains("Linux)"))
    #expect(!agent.contains("Unknown"))
    #expect(agent.prefix { $0 != " " }.contains("xctest"), "\(agent)")
  }

  @Test("The agent is built from the bundle, else from the first argument")
  func agentParts() {
    let library = "Alamofire/\(AFInfo.version)"
    #expect(
      HTTPHeader.userAgent(info: [:], arguments: ["/usr/bin/tool", "x"]) == "tool (Linux) \(library)")
    #expect(HTTPHeader.userAgent(info: [:], arguments: []) == "\(library) (Linux)")
    #expect(
      HTTPHeader.userAgent(info: ["CFBundleShortVersionString": "1.2"], arguments: ["tool"])
        == "tool/1.2 (Linux) \(library)")
    let info = [
      "CFBundleExecutable": "App", "CFBundleShortVersionString": "1.2", "CFBundleVersion": "3",
      "CFBundleIdentifier": "org.example.app",
    ]
    #expect(
      HTTPHeader.userAgent(info: info, arguments: ["/bin/tool"])
        == "App/1.2 (org.example.app; build:3; Linux) \(library)")
  }

  @Test("The agent is a valid field value for any program name")
  func agentOfOddProgram() {
    let agent = HTTPHeader.userAgent(info: [:], arguments: ["/bin/t\u{f6}ol\r\nX: (y)\n"])
    #expect(agent.hasPrefix("t_ol_X___y__ (Linux) "))
  }

  @Test("The agent is a valid field value for any values of a bundle")
  func agentOfOddBundle() {
    let info = [
      "CFBundleExecutable": "My App", "CFBundleShortVersionString": "1 (beta)",
      "CFBundleVersion": "2\r\nX: y", "CFBundleIdentifier": "org.example;app",
    ]
    #expect(
      HTTPHeader.userAgent(info: info, arguments: [])
        == "My_App/1__beta_ (org.example_app; build:2_X__y; Linux) Alamofire/\(AFInfo.version)")
  }
}
