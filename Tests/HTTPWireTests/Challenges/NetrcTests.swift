import HTTPWire
import Testing

@Suite("netrc files")
struct NetrcTests {
  private let text = """
    # passwords of the team
    machine a.test login alice password s3cret
    machine B.test
      login bob
      account none
      password "with space and \\"marks\\""
    macdef init
    machine evil.test login mallory password x

    machine c.test login carol password #1 machine a.test login other password y
    machine d.test
    default login anonymous password me@
    """

  @Test(
    "Hosts",
    arguments: [
      ("a.test", "alice", "s3cret"), ("A.TEST", "alice", "s3cret"),
      ("b.test", "bob", #"with space and "marks""#),
      ("c.test", "carol", "#1"), ("evil.test", "anonymous", "me@"), ("d.test", "anonymous", "me@"),
      ("other.test", "anonymous", "me@"),
    ])
  func hosts(host: String, user: String, password: String) {
    #expect(Netrc(text).credential(host: host) == PasswordCredential(user: user, password: password))
  }

  @Test("Keywords in capitals count, and values keep theirs") func capitals() {
    let netrc = Netrc(
      "MACHINE A.test Login Ann PASSWORD Secret\nMacDef x\nmachine evil.test\n\nDEFAULT LOGIN b ACCOUNT c Password d"
    )
    #expect(netrc.credential(host: "a.test") == PasswordCredential(user: "Ann", password: "Secret"))
    #expect(netrc.credential(host: "evil.test") == PasswordCredential(user: "b", password: "d"))
    #expect(Netrc("machine DEFAULT login a").credential(host: "other") == nil, "a host, no keyword")
  }

  @Test("Without a default entry other hosts have no credential") func noDefault() {
    #expect(Netrc("machine a login b password c").credential(host: "x") == nil)
    #expect(Netrc("login b password c").credential(host: "b") == nil)
    #expect(Netrc("").credential(host: "") == nil)
    #expect(Netrc("machine").credential(host: "") == nil)
    #expect(Netrc("machine a password \"open").credential(host: "a")?.password == "open")
  }
}
