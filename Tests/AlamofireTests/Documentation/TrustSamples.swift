import Alamofire
import HTTPTestServer
import Testing

// Samples of the comments on server trust; see `SampleTests`.

private func show(_ value: Any) {}

private func trusts(pem: Data, companyRoot: Certificate) throws {
  let trust = ServerTrust(certificates: try Certificate.all(in: pem), host: "example.com")
  trust.anchors = [companyRoot]
  try trust.evaluate()
}

private func failures(response: AFDataResponse<Data>) {
  if let failure = response.error?.underlyingError as? ServerTrust.Failure, failure.kind == .expired {
    show(failure.localizedDescription)
  }
}

private func policies(trust: SecTrust) throws {
  let policy = TrustPolicy.hostname("example.com")
  try trust.af.evaluate(afterApplying: policy)
}

private func certificates(file: URL) throws {
  do {
    let certificate = try Certificate.all(in: Data(contentsOf: file)).first
    show(certificate as Any)
  }
  let key = try PublicKey.all(in: Data(contentsOf: file)).first
  print(key?.pin ?? "there is none")
}

private func pins() throws {
  do {
    let pin = try PublicKeyPin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    show(pin)
  }
  let evaluator = try PublicKeysTrustEvaluator(pins: [
    "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "sha256/n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
  ])
  show(evaluator)
}

private enum CompanyError: Error { case stranger }

struct CompanyEvaluator: ServerTrustEvaluating {
  func evaluate(_ trust: SecTrust, forHost host: String) throws {
    try trust.af.performValidation(forHost: host)
    guard trust.af.certificates.contains(where: { $0.subject.contains("O=Company") }) else {
      throw CompanyError.stranger
    }
  }
}

private func managers(folder: URL) throws {
  do {
    let manager = ServerTrustManager(evaluators: ["example.com": .default])
    show(manager)
  }
  do {
    let manager = ServerTrustManager(evaluators: [
      "example.com": .revocationChecking(options: [.ocsp, .requirePositiveResponse])
    ])
    show(manager)
  }
  do {
    let manager = ServerTrustManager(evaluators: [
      "example.com": .pinnedCertificates(certificates: try Certificate.all(inFolder: folder))
    ])
    show(manager)
  }
  do {
    let manager = ServerTrustManager(evaluators: [
      "example.com": .composite(evaluators: [.revocationChecking, .publicKeys])
    ])
    show(manager)
  }
  let manager = ServerTrustManager(evaluators: ["localhost": .disabled])
  show(manager)
}

private func weakServers(authority: TestIdentity) throws {
  var weak = TestIdentity.Specification(commonName: "weak", dnsNames: ["localhost"], issuer: authority)
  weak.digest = .sha1
  let server = try HTTPTestServer(.tls(TestIdentity(weak)))
  show(server)
}

private func responders(authority: TestIdentity, stolen: TestIdentity) throws {
  let responder = StatusResponder(authority, revoked: [stolen])
  let server = try HTTPTestServer(routes: .standard.adding("/ocsp", responder))
  var options = TLSOptions()
  options.stapledResponse = try responder.response(about: stolen)
  show((server, options))
}

private func managersAndAuthorities() throws {
  do {
    let manager = ServerTrustManager(
      allHostsMustBeEvaluated: false,
      evaluators: [
        "api.example.com": try .publicKeys(pins: [
          "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
          "sha256/n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
        ]),
        "*.example.com": .revocationChecking(options: [.ocsp, .requirePositiveResponse]),
      ])
    let session = Session(serverTrustManager: manager)
    show(session)
  }
  do {
    var options = TransportOptions()
    options.trustStore = .file("/etc/company/authorities.pem")
    let session = Session(transportOptions: options)
    show(session)
  }
  let pins = try Certificate.all(contentsOf: URL(fileURLWithPath: "/etc/company/server.pem"))
  let manager = ServerTrustManager(evaluators: [
    "localhost": .pinnedCertificates(certificates: pins, acceptSelfSignedCertificates: true)
  ])
  show(manager)
}

func isPinned(_ trust: SecTrust, certificate: Data) -> Bool {
  var error: CFError?
  guard SecTrustEvaluateWithError(trust, &error) else { return false }
  let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []
  return chain.contains { SecCertificateCopyData($0) as Data == certificate }
}

private func makingATrust(leaf: Certificate, issuer: Certificate) {
  var trust: SecTrust?
  let status = SecTrustCreateWithCertificates(
    [leaf, issuer], SecPolicyCreateSSL(true, "example.com"), &trust)
  print(status)
}
