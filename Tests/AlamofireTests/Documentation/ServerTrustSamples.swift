import Alamofire

// Samples of ServerTrust.md; see `SampleTests`.

private func show(_ value: Any) {}

private func store(companyCA: URL) throws {
  var options = TransportOptions()
  options.trustStore = .pem(try Data(contentsOf: companyCA))
  let session = Session(transportOptions: options)
  show(session)
}

private func manager(folder: URL) throws {
  let manager = ServerTrustManager(
    allHostsMustBeEvaluated: false,
    evaluators: [
      "api.example.com": try .publicKeys(pins: [
        "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "sha256/n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
      ]),
      "files.example.com": .pinnedCertificates(certificates: try Certificate.all(inFolder: folder)),
      "*.example.com": .revocationChecking(options: [.ocsp, .requirePositiveResponse]),
    ])
  let session = Session(serverTrustManager: manager)
  show(session)
}

private func text(pemText: String) throws {
  let certificates = try Certificate.all(in: Data(pemText.utf8))
  show(certificates)
}

private func selfSigned() throws {
  let pins = try Certificate.all(contentsOf: URL(fileURLWithPath: "/etc/company/server.pem"))
  let manager = ServerTrustManager(evaluators: [
    "localhost": .pinnedCertificates(certificates: pins, acceptSelfSignedCertificates: true)
  ])
  let session = Session(serverTrustManager: manager)
  show(session)
}

private func pins(file: URL) throws {
  for certificate in try Certificate.all(contentsOf: file) {
    print(certificate.subject, certificate.publicKey?.pin ?? "unreadable key")
  }
}

private enum CompanyError: Error { case stranger }
private struct OrganizationEvaluator: ServerTrustEvaluating {
  func evaluate(_ trust: SecTrust, forHost host: String) throws {
    try trust.af.performValidation(forHost: host)
    guard trust.af.certificates.contains(where: { $0.subject.contains("O=Company") }) else {
      throw CompanyError.stranger
    }
  }
}

private func errors(response: AFDataResponse<Data>) {
  if case .serverTrustEvaluationFailed(let reason) = response.error {
    print(reason)
  } else if let failure = response.error?.underlyingError as? URLError {
    print(failure.code == .serverCertificateHasBadDate, failure.localizedDescription)
  }
}
