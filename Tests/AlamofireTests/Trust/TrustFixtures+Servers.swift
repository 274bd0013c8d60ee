import Alamofire
import HTTPTestServer

extension TrustFixtures {
  /// Returns the rows of the table by their names.
  func fixtures() throws -> [String: ServerFixture] {
    try dates().merging(names()) { $1 }.merging(chains()) { $1 }.merging(constraints()) { $1 }
      .merging(strengths()) { $1 }
      .merging(pins()) { $1 }.merging(lists()) { $1 }.merging(partialLists()) { $1 }.merging(staples()) { $1 }
  }

  private func dates() throws -> [String: ServerFixture] {
    [
      "good": fixture(try server()),
      "expired": fixture(
        try server {
          $0.notBefore = .seconds(-7200)
          $0.notAfter = .seconds(-3600)
        }),
      "early": fixture(
        try server {
          $0.notBefore = .seconds(3600)
          $0.notAfter = .seconds(7200)
        }),
      "expired-issuer": fixture(
        try server {
          $0.issuer = try? Self.authority("Old", by: middle) {
            $0.notBefore = .seconds(-7200)
            $0.notAfter = .seconds(-3600)
          }
        }),
    ]
  }

  private func names() throws -> [String: ServerFixture] {
    func named(_ names: [String], _ addresses: [String] = [], host: String) throws -> ServerFixture {
      let identity = try server {
        $0.dnsNames = names
        $0.ipAddresses = addresses
      }
      return fixture(identity) { $0.host = host }
    }
    return [
      "wrong-host": try named(["other.lab.localhost"], host: "api.lab.localhost"),
      "upper-case": try named(["api.lab.localhost"], host: "API.Lab.localhost"),
      "absolute-name": try named(["api.lab.localhost"], host: "api.lab.localhost."),
      "wildcard": try named(["*.lab.localhost"], host: "api.lab.localhost"),
      "wildcard-parent": try named(["*.lab.localhost"], host: "lab.localhost"),
      "wildcard-two-labels": try named(["*.lab.localhost"], host: "a.api.lab.localhost"),
      "wildcard-in-label": try named(["a*.lab.localhost"], host: "api.lab.localhost"),
      "wildcard-of-all": try named(["*.localhost"], host: "api.localhost"),
      "a-label": try named(["xn--bcher-kva.lab.localhost"], host: "xn--bcher-kva.lab.localhost"),
      "a-label-wildcard": try named(["*.lab.localhost"], host: "xn--bcher-kva.lab.localhost"),
      "cn-only": fixture(
        try server {
          $0.commonName = "api.lab.localhost"
          $0.dnsNames = []
        }),
      "ip": try named([], ["127.0.0.1"], host: "127.0.0.1"),
      "ip-other": try named([], ["127.0.0.2"], host: "127.0.0.1"),
      "ip-as-name": try named(["127.0.0.1"], host: "127.0.0.1"),
      "ip6": try named([], ["::1"], host: "::1"),
    ]
  }

  private func chains() throws -> [String: ServerFixture] {
    func issued(by issuer: TestIdentity) throws -> ServerFixture {
      fixture(try server { $0.issuer = issuer })
    }
    let short = try Self.authority("Short", by: middle) { $0.pathLength = 0 }
    let limited = try Self.authority("Limited", by: middle) { $0.permittedDomains = ["other.localhost"] }
    let fitting = try Self.authority("Fitting", by: middle) { $0.permittedDomains = ["lab.localhost"] }
    let excluding = try Self.authority("Excluding", by: middle) { $0.excludedDomains = ["lab.localhost"] }
    var missing = try issued(by: middle)
    missing.tls.sendsIntermediates = false
    var crossed = try issued(by: crossMiddle)
    crossed.tls.appendedCertificates = [middle.certificatePEM]
    // The newer root, as certified by the older one, which is no longer trusted.
    let oldRoot = try Self.authority("Root", by: untrusted) { $0.keyOwner = root }
    var old = try issued(by: middle)
    old.tls.appendedCertificates = [oldRoot.certificatePEM]
    return [
      "unknown-root": try issued(by: untrusted), "missing-intermediate": missing, "cross-signed": crossed,
      "cross-signed-root": old, "issued-by-server": try issued(by: server()),
      "path-too-long": try issued(by: Self.authority("Below", by: short)),
      "path-in-length": try issued(by: short), "name-not-permitted": try issued(by: limited),
      "name-excluded": try issued(by: excluding), "name-permitted": try issued(by: fitting),
      "self-signed": fixture(try server { $0.issuer = nil }),
    ]
  }

  /// Returns servers whose authorities have constraints, and several paths.
  private func constraints() throws -> [String: ServerFixture] {
    let excludingOne = try Self.authority("Excluding one", by: middle) {
      $0.excludedDomains = ["api.lab.localhost"]
    }
    let bare = try Self.authority("Bare", by: middle) { $0.hasBasicConstraints = false }
    // The authority, as certified by two trusted ones, one of which allows other names only.
    let narrow = try Self.authority("Middle", by: otherRoot) {
      $0.keyOwner = middle
      $0.permittedDomains = ["elsewhere.localhost"]
    }
    var narrowed = fixture(try server { $0.issuer = narrow })
    narrowed.tls.appendedCertificates = [middle.certificatePEM]
    let fitting = try Self.authority("Fitting", by: middle) { $0.permittedDomains = ["lab.localhost"] }
    let wild = try server {
      $0.issuer = excludingOne
      $0.dnsNames = ["*.lab.localhost"]
    }
    let renamed = try server {
      $0.issuer = fitting
      $0.commonName = "www.elsewhere.example"
      $0.dnsNames = []
      $0.ipAddresses = ["127.0.0.1"]
    }
    return [
      "wildcard-excluded": fixture(wild),
      "wildcard-not-excluded": fixture(wild) { $0.host = "www.lab.localhost" },
      "cross-signed-excluded": try crossSignedExcluded(),
      "common-name-not-permitted": fixture(renamed) { $0.host = "127.0.0.1" },
      "authority-not-stated": fixture(try server { $0.issuer = bare }), "cross-signed-narrow": narrowed,
    ]
  }

  /// Returns a server of an authority that two trusted ones have certified, one of which excludes its host. A wildcard
  /// is neither within nor outside of an excluded name, so only the host shows which path is valid.
  private func crossSignedExcluded() throws -> ServerFixture {
    let excluding = try Self.authority("Middle", by: otherRoot) {
      $0.keyOwner = middle
      $0.excludedDomains = ["api.lab.localhost"]
    }
    let wild = try server {
      $0.issuer = excluding
      $0.dnsNames = ["*.lab.localhost"]
    }
    return fixture(wild) { $0.tls.appendedCertificates = [middle.certificatePEM] }
  }

  private func strengths() throws -> [String: ServerFixture] {
    let weak = try Self.authority("Weak", by: middle) { $0.key = .rsa(bits: 1024) }
    // There are no signatures of elliptic curves with MD5.
    let strong = try Self.authority("Strong", by: middle) { $0.key = .rsa(bits: 2048) }
    return [
      "rsa-2048": fixture(try server { $0.key = .rsa(bits: 2048) }),
      "rsa-1024": fixture(try server { $0.key = .rsa(bits: 1024) }),
      "weak-issuer": fixture(try server { $0.issuer = weak }),
      "sha-1": fixture(try server { $0.digest = .sha1 }),
      "md5": fixture(
        try server {
          $0.issuer = strong
          $0.digest = .md5
        }),
      "client-usage": fixture(try server { $0.usages = [.client] }),
      "code-usage": fixture(try server { $0.usages = [.code] }),
    ]
  }

  /// Returns chains to which a pinned certificate was appended.
  private func pins() throws -> [String: ServerFixture] {
    func pinned(_ identity: TestIdentity) -> ServerFixture {
      fixture(identity) { $0.tls.appendedCertificates = [middle.certificatePEM, root.certificatePEM] }
    }
    return [
      "unpinned-authority": fixture(try server { $0.issuer = otherMiddle }),
      "appended-pin": pinned(try server { $0.issuer = otherMiddle }),
      "appended-pin-self-signed": pinned(try server { $0.issuer = nil }),
      "appended-pin-impostor": pinned(try server { $0.issuer = impostor }),
      "pin-under-server": pinned(try server { $0.issuer = try? server() }),
    ]
  }

  private func listed(_ identity: TestIdentity, _ lists: [[UInt8]]) -> ServerFixture {
    fixture(identity) { $0.options.certificateRevocationLists = lists.map { Data($0) } }
  }

  private func lists() throws -> [String: ServerFixture] {
    let revoked = try server()
    let good = try server()
    let none = try root.revocationList(of: [])
    let sub = try Self.authority("Sub", by: middle)
    return [
      "list-revokes": listed(revoked, [try middle.revocationList(of: [good, revoked])]),
      "list-revokes-issuer": listed(
        try server { $0.issuer = sub }, [try middle.revocationList(of: [sub])]),
      "lists-are-clean": listed(good, [try middle.revocationList(of: [revoked]), none]),
      "list-of-leaf-alone": listed(good, [try middle.revocationList(of: [revoked])]),
      "old-list": listed(
        good, [try middle.revocationList(of: [], issued: .seconds(-7200), next: .seconds(-3600)), none]),
      "old-list-revokes": listed(
        revoked, [try middle.revocationList(of: [revoked], issued: .seconds(-7200), next: .seconds(-3600))]),
      "early-list": listed(good, [try middle.revocationList(of: [], issued: .seconds(3600)), none]),
      "early-list-revokes": listed(
        revoked, [try middle.revocationList(of: [revoked], issued: .seconds(3600)), none]),
      "forged-list": listed(revoked, [try impostor.revocationList(of: [revoked]), none]),
      "weak-list": listed(good, [try middle.revocationList(of: [], digest: .sha1), none]),
      "weak-list-revokes": listed(revoked, [try middle.revocationList(of: [revoked], digest: .sha1)]),
      "unreadable-list": listed(good, [Array("no list".utf8)]),
    ]
  }

  /// Returns servers with lists that do not cover all certificates, or must not be used.
  private func partialLists() throws -> [String: ServerFixture] {
    let revoked = try server()
    let good = try server()
    let none = try root.revocationList(of: [])
    let silent = try Self.authority("Silent", by: middle) { $0.signsLists = false }
    let ofSilent = try server { $0.issuer = silent }
    let indirect = try middle.revocationList(of: [revoked], scope: "indirectCRL:TRUE")
    let foreign = try otherMiddle.revocationList(of: [revoked], scope: "indirectCRL:TRUE", issuer: middle)
    let ofAuthorities = try middle.revocationList(of: [revoked], scope: "onlyCA:TRUE")
    return [
      "indirect-list-revokes": listed(revoked, [indirect, none]),
      "indirect-list": listed(good, [indirect, none]),
      "indirect-list-of-other-authority-revokes": listed(revoked, [foreign, none]),
      "indirect-list-of-other-authority": listed(good, [foreign, none]),
      "unknown-in-entries": listed(
        good, [try middle.revocationList(of: [revoked], rule: .unknownInEntries), none]),
      "unknown-in-entries-revokes": listed(
        revoked, [try middle.revocationList(of: [revoked], rule: .unknownInEntries), none]),
      "list-of-authorities-revokes": listed(revoked, [ofAuthorities, none]),
      "list-of-authorities": listed(good, [ofAuthorities, none]),
      "delta-list-revokes": listed(revoked, [try middle.revocationList(of: [revoked], rule: .delta)]),
      "unknown-list-revokes": listed(revoked, [try middle.revocationList(of: [revoked], rule: .unknown)]),
      "list-without-right-revokes": listed(ofSilent, [try silent.revocationList(of: [ofSilent])]),
      "unusable-lists": listed(
        good,
        [
          try middle.revocationList(of: [revoked], rule: .delta),
          try middle.revocationList(of: [revoked], rule: .unknown),
        ]),
    ]
  }

  private func staples() throws -> [String: ServerFixture] {
    let identity = try server()
    let own = StatusResponder(middle)
    var (old, early, forged, weak) = (own, own, own, own)
    old.issued = .seconds(-7200)
    old.next = .seconds(-3600)
    early.issued = .seconds(3600)
    forged.signer = impostor
    weak.digest = .sha1
    var other = try stapled(identity, own, .good)
    other.tls.stapledResponse = try own.response(about: try server(), status: .revoked)
    var broken = other
    broken.tls.stapledResponse = [1, 2, 3]
    var clean = try stapled(identity, own, .revoked)
    clean.options.certificateRevocationLists.append(Data(try middle.revocationList(of: [])))
    let ofIssuer = try fixture(identity) {
      $0.tls.stapledResponse = try StatusResponder(root).response(about: middle, status: .revoked)
    }
    return [
      "staple-revokes": try stapled(identity, own, .revoked),
      "staple-good": try stapled(identity, own, .good), "staple-revokes-after-clean-lists": clean,
      "staple-unknown": try stapled(identity, own, .unknown), "old-staple": try stapled(identity, old, .good),
      "early-staple": try stapled(identity, early, .good),
      "forged-staple": try stapled(identity, forged, .revoked),
      "weak-staple": try stapled(identity, weak, .good),
      "weak-staple-revokes": try stapled(identity, weak, .revoked),
      "delegated-staple-revokes": try stapled(identity, delegated(middle, [.ocspSigning]), .revoked),
      "delegated-staple-good": try stapled(identity, delegated(middle, [.ocspSigning]), .good),
      "staple-of-no-responder": try stapled(identity, delegated(middle, [.server]), .revoked),
      "staple-of-other-authority": try stapled(identity, delegated(otherMiddle, [.ocspSigning]), .revoked),
      "staple-of-issuer-revokes": ofIssuer, "staple-of-other-certificate": other, "broken-staple": broken,
    ]
  }

  /// Returns a server with a stapled response, whose authority has a revocation list.
  private func stapled(
    _ identity: TestIdentity, _ responder: StatusResponder, _ status: StatusResponder.Status
  ) throws -> ServerFixture {
    let none = Data(try root.revocationList(of: []))
    return try fixture(identity) {
      $0.tls.stapledResponse = try responder.response(about: identity, status: status)
      $0.options.certificateRevocationLists = [none]
    }
  }

  /// Returns a responder whose certificate is issued by `issuer`, with the given usages.
  private func delegated(
    _ issuer: TestIdentity, _ usages: [TestIdentity.Specification.Usage]
  ) throws -> StatusResponder {
    var responder = StatusResponder(middle)
    responder.signer = try server {
      $0.usages = usages
      $0.issuer = issuer
    }
    return responder
  }
}
