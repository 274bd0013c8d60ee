import Testing

@testable import AFCommand

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

  @Test("The method is GET without data, POST with data, or the one that is named")
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

  @Test("A host that looks like a word is not a method")
  func hosts() throws {
    #expect(try invocation("localhost", "name=Ada").url == "http://localhost")
    #expect(try invocation("INTRANET").url == "https://INTRANET")
    #expect(message("GET") == "There is no URL after GET.")
    #expect(message("", "x=1") != nil)
  }

  @Test("Options stand anywhere, attached or apart, and end at --")
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

  @Test("Every option reaches the invocation")
  func values() throws {
    let invocation = try invocation(
      "--timeout", "2.5", "--ca", "ca.pem", "--http1.1", "--timing", "--curl", "--no-check-status",
      "--no-follow", "--max-time", "30", "--connect-timeout=0.5", "-h", "example.com")
    #expect(invocation.timeout == 2.5)
    #expect(invocation.totalTimeout == 30 && invocation.connectTimeout == 0.5)
    #expect(invocation.trustFile == "ca.pem")
    #expect(invocation.isHTTP1Only && invocation.showsTiming && invocation.printsCurl)
    #expect(!invocation.checksStatus)
    #expect(invocation.redirects == .show)
    #expect(invocation.shown == .headers)
    for (text, rate) in [("50000", 50_000), ("200k", 204_800), ("1.5M", 1_572_864), ("1g", 1_073_741_824)] {
      #expect(try self.invocation("--limit-rate", text, "example.com").bandwidth == rate)
    }
    #expect(try self.invocation("--retry", "3", "example.com").retryLimit == 3)
    #expect(try self.invocation("--max-redirects=3", "example.com").redirects == .follow(limit: 3))
    #expect(try self.invocation("--raw", "-", "example.com").rawBody == .standardInput)
  }

  @Test("Help and version need no URL, and -h alone is help")
  func help() throws {
    #expect(try ArgumentParser.parse(["--help"]) == .print(.help))
    #expect(try ArgumentParser.parse(["-h"]) == .print(.help))
    #expect(try ArgumentParser.parse(["--version", "example.com"]) == .print(.version))
  }

  @Test("Mistakes are reported in a sentence that helps")
  func mistakes() {
    #expect(message() == "There is no URL.")
    #expect(message("example.com", "--hedaers") == "There is no option --hedaers; did you mean --headers?")
    #expect(message("example.com", "--frobnicate") == "There is no option --frobnicate.")
    #expect(message("example.com", "-W") == "There is no option -W.")
    #expect(message("example.com", "--auth") == "--auth needs a value: --auth USER:PASS.")
    #expect(message("example.com", "--print", "hx")?.contains("'x'") == true)
    #expect(message("example.com", "--pretty", "nice")?.contains("format") == true)
    #expect(message("example.com", "-A", "ntlm", "-a", "u:p")?.contains("digest") == true)
    #expect(message("example.com", "-A", "digest")?.contains("--auth") == true)
    #expect(message("example.com", "--resolve", "a:b:c")?.contains("HOST:PORT:ADDRESS") == true)
    #expect(message("example.com", "--cert-key", "k")?.contains("--cert FILE") == true)
    #expect(message("example.com", "--http2", "--http1.1")?.contains("exclude") == true)
    #expect(message("example.com", "--session", "..")?.contains("name") == true)
    #expect(message("ws://example.com")?.contains("af ws ws://example.com") == true)
    #expect(message("ws", "example.com", "a=b")?.contains("af ws") == true)
    #expect(message("--timing", "ws", "example.com")?.contains("--har records") == true)
    #expect(message("--limit-rate", "1k", "ws", "example.com")?.contains("--limit-rate") == true)
    #expect(message("--limit-rate", "1k", "sse", "example.com") == nil)
    #expect(message("-phb", "sse", "example.com")?.contains("-v shows") == true)
    #expect(message("-q", "sse", "example.com") == nil)
    #expect(message("example.com", "--form=1") == "--form does not take a value.")
    #expect(message("example.com", "--timeout", "soon")?.contains("'soon'") == true)
    #expect(message("example.com", "--timeout", "-1") != nil)
    #expect(message("example.com", "--max-time", "0")?.hasPrefix("--max-time needs") == true)
    for rate in ["", "k", "0", "-1k", "1kk", "nan", "1e99"] {
      #expect(message("example.com", "--limit-rate", rate)?.contains("200k") == true, "\(rate)")
    }
    #expect(message("example.com", "--retry", "-1")?.contains("0 to 1000") == true)
    #expect(message("--retry=1", "sse", "example.com")?.contains("--retry is not for") == true)
    #expect(message("--retry=1", "--segments=2", "-d", "example.com")?.contains("--retry is not for") == true)
    #expect(message("example.com", "--connect-timeout", "x")?.hasPrefix("--connect-timeout needs") == true)
    #expect(message("example.com", "--timeout", "nan") != nil)
    #expect(message("example.com", "--max-redirects", "-1") != nil)
    #expect(message("example.com", "--raw", "x", "a=b")?.contains("--raw") == true)
    #expect(message("-f", "example.com", "a:=1")?.contains("a=1") == true)
  }

  @Test("An option of another program is refused with what to write instead")
  func foreignOptions() throws {
    #expect(
      message("-XPUT", "example.com")
        == "There is no option -X; write the method before the URL: af PUT URL.")
    #expect(message("-H", "A: b", "example.com")?.contains("Name:text") == true)
    #expect(message("-sS", "example.com")?.hasPrefix("There is no option -s; write -q;") == true)
    #expect(message("-x", "p:1", "example.com")?.contains("--proxy URL; for the -x of HTTPie") == true)
    #expect(message("-d", "a=b", "http://example.com")?.contains("data after its URL") == true)
    #expect(message("--stream", "example.com")?.contains("as they come") == true)
  }

  @Test("Options of HTTPie have the same effect")
  func familiarOptions() throws {
    #expect(try invocation("--no-follow", "-F", "example.com").redirects == .follow(limit: nil))
    #expect(try invocation("--max-redirects=3", "--follow", "example.com").redirects == .follow(limit: 3))
    #expect(try !invocation("--verify=no", "example.com").verifiesServer)
    #expect(try invocation("-k", "--verify=yes", "example.com").verifiesServer)
    #expect(try invocation("--verify", "ca.pem", "example.com").trustFile == "ca.pem")
  }

  @Test(
    "A file of authorities is used after an option that accepts every certificate, unless that comes later")
  func verification() throws {
    for words in [["-k"], ["--verify=no"]] {
      for file in [["--verify", "ca.pem"], ["--ca", "ca.pem"]] {
        guard case .send(let strict) = try ArgumentParser.parse(words + file + ["example.com"]),
          case .send(let lax) = try ArgumentParser.parse(file + words + ["example.com"])
        else { throw UsageError("nothing is sent") }
        #expect(strict.verifiesServer && strict.trustFile == "ca.pem", "\(words + file)")
        #expect(!lax.verifiesServer, "\(file + words)")
      }
    }
  }

  @Test("Credentials after a token are no token, and keep the type that was chosen for them")
  func credentialsAfterToken() throws {
    let basic = try invocation("--bearer", "t", "-a", "u:p", "example.com")
    #expect(basic.authentication == .basic)
    #expect(basic.credentials == Invocation.Credentials(user: "u", password: "p"))
    #expect(try invocation("-A", "digest", "--bearer", "t", "-a", "u:p", "x.test").authentication == .digest)
    #expect(try invocation("-a", "u:p", "--bearer", "t", "example.com").authentication == .bearer)
    #expect(try invocation("--bearer", "t", "-A", "digest", "-a", "u:p", "x.test").authentication == .digest)
    #expect(try invocation("-A", "bearer", "--bearer", "t", "-a", "u:p", "x.test").authentication == .bearer)
  }

  @Test("A later option overrides an earlier one of another form")
  func laterForms() throws {
    let session = try invocation("--session-read-only", "a", "--session", "b", "example.com")
    #expect(session.session == "b" && !session.isSessionReadOnly)
    #expect(try invocation("--session", "b", "--session-read-only", "a", "example.com").isSessionReadOnly)
    for later in ["none", "http://p.test:2"] {
      let proxy = try invocation("--proxy", "http:http://p.test:1", "--proxy", later, "example.com")
      #expect(proxy.proxiesByScheme.isEmpty && proxy.proxy == later)
    }
    let both = try invocation("--proxy", "http://p.test:2", "--proxy", "http:none", "example.com")
    #expect(both.proxiesByScheme == ["http": "none"] && both.proxy == "http://p.test:2")
  }

  @Test("Bodies that exclude each other are refused")
  func bodyMistakes() {
    #expect(message("example.com", "--raw", "x", "@f")?.contains("second body") == true)
    #expect(message("example.com", "@f", "a=b")?.contains("whole") == true)
    #expect(message("example.com", "a@f")?.contains("--form") == true)
    #expect(message("-f", "example.com", "a:=@f")?.contains("a=@f") == true)
    #expect(message("-c", "example.com")?.contains("--output FILE") == true)
    #expect(message("-co", "x", "example.com", "a=b")?.contains("GET") == true)
  }
}
