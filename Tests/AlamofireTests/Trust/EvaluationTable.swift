import Alamofire
import Testing

/// The result of each evaluator for each server of ``TrustFixtures``: `ok`, or the kind of the failure.
///
/// - `default`, `anyHost`: `DefaultTrustEvaluator` with and without the host
/// - `revoc`, `positive`: `RevocationTrustEvaluator` without the network, soft and with `requirePositiveResponse`
/// - `pinned`, `keys`: the certificate or key of the authority "Middle"; `…Only` without validation
/// - `own`: the server's own certificate, with `acceptSelfSignedCertificates`
/// - `both`: a composite of `default` and `keys`
enum EvaluationTable {
  struct Entry: Sendable, CustomTestStringConvertible {
    let fixture: String
    let evaluator: String
    let verdict: String

    var testDescription: String { "\(fixture), \(evaluator): \(verdict)" }
  }

  static let entries: [Entry] = {
    let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    guard let head = lines.first else { return [] }
    return lines.dropFirst().flatMap { line in
      zip(head, line).dropFirst().map { Entry(fixture: line[0], evaluator: $0, verdict: $1) }
    }
  }()

  private static let text = """
    fixture                    default anyHost revoc   positive pinned  pinnedOnly own     keys    keysOnly both    disabled
    good                        ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    expired                     expired expired expired expired  expired ok         expired expired ok       expired ok
    early                       early   early   early   early    early   ok         early   early   ok       early   ok
    expired-issuer              expired expired expired expired  expired ok         ok      expired ok       expired ok
    wrong-host                  host    ok      host    host     host    ok         host    host    ok       host    ok
    upper-case                  ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    absolute-name               ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    wildcard                    ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    wildcard-parent             host    ok      host    host     host    ok         host    host    ok       host    ok
    wildcard-two-labels         host    ok      host    host     host    ok         host    host    ok       host    ok
    wildcard-in-label           host    ok      host    host     host    ok         host    host    ok       host    ok
    wildcard-of-all             host    ok      host    host     host    ok         host    host    ok       host    ok
    a-label                     ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    a-label-wildcard            ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    cn-only                     host    ok      host    host     host    ok         host    host    ok       host    ok
    ip                          ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    ip-other                    host    ok      host    host     host    ok         host    host    ok       host    ok
    ip-as-name                  host    ok      host    host     host    ok         host    host    ok       host    ok
    ip6                         ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    unknown-root                root    root    root    root     root    pin        ok      root    key      root    ok
    missing-intermediate        root    root    root    root     root    pin        ok      root    key      root    ok
    cross-signed                ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    cross-signed-root           ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    issued-by-server            bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    path-too-long               bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    path-in-length              ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    name-not-permitted          bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    name-excluded               bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    wildcard-excluded           bad     ok      bad     bad      bad     ok         ok      bad     ok       bad     ok
    wildcard-not-excluded       ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    common-name-not-permitted   ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    cross-signed-narrow         ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    cross-signed-excluded       ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    authority-not-stated        bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    name-permitted              ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    self-signed                 root    root    root    root     root    pin        ok      root    key      root    ok
    rsa-2048                    ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    rsa-1024                    bad     bad     bad     bad      bad     ok         bad     bad     ok       bad     ok
    weak-issuer                 bad     bad     bad     bad      bad     ok         ok      bad     ok       bad     ok
    sha-1                       bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    md5                         bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    client-usage                bad     bad     bad     bad      bad     ok         bad     bad     ok       bad     ok
    code-usage                  bad     bad     bad     bad      bad     ok         bad     bad     ok       bad     ok
    unpinned-authority          ok      ok      ok      unknown  pin     pin        ok      key     key      key     ok
    appended-pin                ok      ok      ok      unknown  pin     pin        ok      key     key      key     ok
    appended-pin-self-signed    root    root    root    root     root    pin        ok      root    key      root    ok
    appended-pin-impostor       root    root    root    root     root    pin        ok      root    key      root    ok
    pin-under-server            bad     bad     bad     bad      bad     pin        ok      bad     key      bad     ok
    list-revokes                revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    list-revokes-issuer         revoked revoked revoked revoked  revoked revoked    ok      revoked revoked  revoked ok
    lists-are-clean             ok      ok      ok      ok       ok      ok         ok      ok      ok       ok      ok
    list-of-leaf-alone          ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    old-list                    ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    old-list-revokes            revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    early-list                  ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    early-list-revokes          revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    indirect-list-revokes       revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    indirect-list               ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    indirect-list-of-other-authority-revokes revoked revoked revoked revoked revoked revoked revoked revoked revoked revoked ok
    indirect-list-of-other-authority ok ok  ok      unknown  ok      ok         ok      ok      ok       ok      ok
    unknown-in-entries          ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    unknown-in-entries-revokes  revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    list-of-authorities-revokes revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    list-of-authorities         ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    forged-list                 ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    weak-list                   ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    weak-list-revokes           revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    delta-list-revokes          revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    unknown-list-revokes        revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    list-without-right-revokes  revoked revoked revoked revoked  revoked revoked    revoked revoked revoked  revoked ok
    unusable-lists              ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    unreadable-list             bad     bad     bad     bad      bad     bad        bad     bad     bad      bad     ok
    staple-revokes              ok      ok      revoked revoked  ok      ok         ok      ok      ok       ok      ok
    staple-revokes-after-clean-lists ok ok  revoked revoked  ok      ok         ok      ok      ok       ok      ok
    staple-good                 ok      ok      ok      ok       ok      ok         ok      ok      ok       ok      ok
    staple-unknown              ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    old-staple                  ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    early-staple                ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    forged-staple               ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    weak-staple                 ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    weak-staple-revokes         ok      ok      revoked revoked  ok      ok         ok      ok      ok       ok      ok
    delegated-staple-revokes    ok      ok      revoked revoked  ok      ok         ok      ok      ok       ok      ok
    delegated-staple-good       ok      ok      ok      ok       ok      ok         ok      ok      ok       ok      ok
    staple-of-no-responder      ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    staple-of-other-authority   ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    staple-of-issuer-revokes    ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    staple-of-other-certificate ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    broken-staple               ok      ok      ok      unknown  ok      ok         ok      ok      ok       ok      ok
    """

  /// Returns the name of a thrown error in the table.
  static func word(for error: (any Error)?) -> String {
    guard let error else { return "ok" }
    guard case .serverTrustEvaluationFailed(let reason) = error.asAFError else { return "\(error)" }
    switch reason {
    case .certificatePinningFailed: return "pin"
    case .publicKeyPinningFailed: return "key"
    case .trustEvaluationFailed(let inner):
      guard let failure = inner as? ServerTrust.Failure else { return "\(reason)" }
      return words[failure.kind] ?? failure.kind.description
    default: return "\(reason)"
    }
  }

  private static let words: [ServerTrust.Failure.Kind: String] = [
    .hostMismatch: "host", .expired: "expired", .notYetValid: "early", .unknownRoot: "root",
    .untrusted: "bad",
    .revoked: "revoked", .revocationUnknown: "unknown",
  ]
}
