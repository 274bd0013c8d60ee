import AFCommand
import Testing

@Suite struct ArgumentParserTests {
  private func invocation(_ arguments: String...) throws -> Invocation {
    guard case .send(let invocation) = try ArgumentParser.parse(arguments) else {
      throw UsageError("nothing is sent")
    }
    return invocation
  }

  private func message(_ arguments: String...) -> String? {
    do {
      _ = try ArgumentParser.parse(arguments)
      return nil
    } catch {
      return error.message
    }
  }

  @Test("the method is GET without data, POST with data, or the one that is named")
  func methods() throws {
    #expect(try invocation("example.com").effectiveMethod == "GET")
    #expect(try invocation("example.com", "q==1", "A:b").effectiveMethod == "GET")
    #expect(try invocation("example.com", "name=Ada").effectiveMethod == "POST")
    #expect(try invocation("example.com", "age:=36").effectiveMethod == "POST")
    #expect(try invocation("--raw", "x", "example.com").effectiveMethod == "POST")
    #expect(try invocation("PUT", "example.com", "name=Ada").effectiveMethod == "PUT")
    #expect(try invocation("delete", "example.com").effectiveMethod == "DELETE")
    #expect(try invocation("PURGE", "example.com").effectiveMethod == "PURGE")
  }

  @Test("a host that looks like a word is not a method")
  func hosts() throws {
    #expect(try invocation("localhost", "name=Ada").url == "http://localhost")
    #expect(try invocation("INTRANET").url == "https://INTRANET")
    #expect(message("GET") == "There is no URL behind GET.")
    #expect(message("", "x=1") != nil)
  }

  @Test("options stand anywhere, attached or apart, and end at --")
  func options() throws {
    let expected = try invocation("--auth", "u:p:q", "--form", "--verbose", "example.com", "a=b")
    #expect(expected.credentials == Invocation.Credentials(user: "u", password: "p:q"))
    #expect(expected.bodyKind == .form)
    #expect(expected.shown == .everything)
    #expect(try invocation("example.com", "-fvau:p:q", "a=b") == expected)
    #expect(try invocation("example.com", "a=b", "-vf", "-a", "u:p:q") == expected)
    #expect(try invocation("example.com", "--auth=u:p:q", "-v", "a=b", "-f") == expected)
    #expect(try invocation("example.com", "--", "--a=b").items == [.string(name: "--a", value: "b")])
  }

  @Test("every option reaches the invocation")
  func values() throws {
    let invocation = try invocation(
      "--timeout", "2.5", "--ca", "ca.pem", "--http1.1", "--timing", "--curl", "--no-check-status",
      "--no-follow",
      "-h", "example.com")
    #expect(invocation.timeout == 2.5)
    #expect(invocation.trustFile == "ca.pem")
    #expect(invocation.isHTTP1Only && invocation.showsTiming && invocation.isCurlWanted)
    #expect(!invocation.checksStatus)
    #expect(invocation.redirects == .show)
    #expect(invocation.shown == .headers)
    #expect(try self.invocation("--max-redirects=3", "example.com").redirects == .follow(limit: 3))
    #expect(try self.invocation("--raw", "-", "example.com").rawBody == .standardInput)
  }

  @Test("help and version need no URL, and -h alone is help")
  func help() throws {
    #expect(try ArgumentParser.parse(["--help"]) == .help)
    #expect(try ArgumentParser.parse(["-h"]) == .help)
    #expect(try ArgumentParser.parse(["--version", "example.com"]) == .version)
  }

  @Test("mistakes are reported in a sentence that helps")
  func mistakes() {
    #expect(message() == "There is no URL.")
    #expect(message("example.com", "--hedaers") == "There is no option --hedaers; did you mean --headers?")
    #expect(message("example.com", "--frobnicate") == "There is no option --frobnicate.")
    #expect(message("example.com", "-x") == "There is no option -x.")
    #expect(message("example.com", "--auth") == "--auth needs a value: --auth USER:PASS.")
    #expect(message("example.com", "-a", "u")?.contains("USER:PASS") == true)
    #expect(message("example.com", "--form=1") == "--form takes no value.")
    #expect(message("example.com", "--timeout", "soon")?.contains("'soon'") == true)
    #expect(message("example.com", "--timeout", "-1") != nil)
    #expect(message("example.com", "--timeout", "nan") != nil)
    #expect(message("example.com", "--max-redirects", "-1") != nil)
    #expect(message("example.com", "--raw", "x", "a=b")?.contains("--raw") == true)
    #expect(message("-f", "example.com", "a:=1")?.contains("a=1") == true)
  }

  @Test("the help fits on a screen of 80 columns and names every long option")
  func helpText() {
    let lines = Help.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 24)
    #expect(lines.allSatisfy { $0.count <= 80 })
    for name in [
      "--json", "--form", "--raw", "--headers", "--body", "--verbose", "--timing", "--curl", "--auth",
      "--timeout",
      "--max-redirects", "--no-follow", "--ca", "--http1.1", "--no-check-status", "--help", "--version",
    ] {
      #expect(Help.text.contains(name))
      #expect(message(name)?.hasPrefix("There is no option") != true)
    }
  }
}
