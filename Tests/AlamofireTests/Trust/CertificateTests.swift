import Alamofire
import HTTPTestServer
import Testing

/// A certificate created by the command `openssl`, and its properties.
enum Known {
  static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIB5jCCAYygAwIBAgICEjQwCgYIKoZIzj0EAwIwMDELMAkGA1UEBhMCREUxEDAO
    BgNVBAoMB0NvbXBhbnkxDzANBgNVBAMMBlBpbm5lZDAgFw0yNjExMjExOTEwMzla
    GA8yMTI2MTAyODE5MTAzOVowMDELMAkGA1UEBhMCREUxEDAOBgNVBAoMB0NvbXBh
    bnkxDzANBgNVBAMMBlBpbm5lZDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGw6
    e39fsE7xoJKhnvdmcNpB12IgEu8aPL03GomqN5pLP1L6q8b5HeWA+IyYORAMiVCZ
    gFArrpU0vZIbnrH66IijgZMwgZAwHQYDVR0OBBYEFBuqlVKjIbqG+ayT9oUmcgjJ
    6p58MB8GA1UdIwQYMBaAFBuqlVKjIbqG+ayT9oUmcgjJ6p58MA8GA1UdEwEB/wQF
    MAMBAf8wPQYDVR0RBDYwNIILZXhhbXBsZS5jb22CDSouZXhhbXBsZS5vcmeHBMAA
    AgGHECABDbgAAAAAAAAAAAAAAAEwCgYIKoZIzj0EAwIDSAAwRQIgevNn9o05kuuX
    tMEq0SMAXkyNKdcfliBObATdzZ0C/cwCIQCNhHVR7Xkj5ddRV7AleyHYYm2biNer
    LfyHObiWyn/7qQ==
    -----END CERTIFICATE-----
    """

  static let key = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEbDp7f1+wTvGgkqGe92Zw2kHXYiAS
    7xo8vTcaiao3mks/Uvqrxvkd5YD4jJg5EAyJUJmAUCuulTS9khuesfroiA==
    -----END PUBLIC KEY-----
    """

  static let pin = "sha256/BOTZ1EAS3cr8g5ISZaFh5gvYEk6Aw5maTaIgS+vFuZY="
}

@Suite("Certificates and keys") struct CertificateTests {
  private func known() throws -> Certificate {
    try #require(Certificate.all(in: Data(Known.certificate.utf8)).first)
  }

  @Test("A certificate returns its properties") func properties() throws {
    let certificate = try known()
    #expect(certificate.subject == "CN=Pinned,O=Company,C=DE")
    #expect(certificate.issuer == certificate.subject)
    #expect(certificate.isSelfSigned)
    #expect(certificate.serialNumber == "1234")
    #expect(certificate.hostNames == ["example.com", "*.example.org"])
    #expect(certificate.addresses == ["192.0.2.1", "2001:db8::1"])
    let validity = try #require(certificate.validity)
    #expect(validity.upperBound.timeIntervalSince(validity.lowerBound) == 36_500 * 86_400)
    #expect(validity.lowerBound == Date(timeIntervalSince1970: 1_795_288_239))
    #expect("\(certificate)" == "Certificate(CN=Pinned,O=Company,C=DE)")
    #expect(certificate.af.publicKey == certificate.publicKey)
    #expect([certificate].af.data == [certificate.data])
    #expect([certificate].af.publicKeys == [try #require(certificate.publicKey)])
  }

  @Test("The key of a certificate is the key of its file") func publicKey() throws {
    let key = try #require(try known().publicKey)
    #expect(try PublicKey.all(in: Data(Known.key.utf8)) == [key])
    #expect(PublicKey(data: key.data) == key)
    #expect(key.pin.description == Known.pin)
    #expect(try PublicKeyPin(Known.pin) == key.pin)
    #expect("\(key)" == "PublicKey(EC 256, \(Known.pin))")
  }

  @Test("DER is read") func der() throws {
    let certificate = try known()
    #expect(Certificate(data: certificate.data) == certificate)
    #expect(try Certificate.all(in: certificate.data) == [certificate])
    // Trailing bytes and truncated data are errors.
    #expect(Certificate(data: certificate.data + [0]) == nil)
    #expect(Certificate(data: certificate.data.dropLast()) == nil)
    #expect(Certificate(data: certificate.data.dropFirst(3)) == nil)
    #expect(Certificate(data: Data()) == nil)
    let key = try #require(certificate.publicKey)
    #expect(PublicKey(data: key.data + [0]) == nil)
    #expect(PublicKey(data: Data()) == nil)
    // The indices of a slice do not begin at 0.
    #expect(Certificate(data: ([1, 2] + certificate.data).dropFirst(2)) == certificate)
  }

  @Test("A text can contain several certificates and other lines") func text() throws {
    let other = try TestIdentity(.init(commonName: "Other", dnsNames: ["other.example"]))
    let text =
      "A bundle.\n" + Known.certificate + "\n" + other.privateKeyPEM + other.certificatePEM + "The end."
    let certificates = try Certificate.all(in: Data(text.utf8))
    #expect(certificates.map(\.subject) == ["CN=Pinned,O=Company,C=DE", "CN=Other"])
    let keys = Known.key + "\n" + Known.certificate
    #expect(try PublicKey.all(in: Data(keys.utf8)).count == 1)
  }

  @Test(
    "Text without a certificate is an error",
    arguments: [
      "", "no certificate", "-----BEGIN CERTIFICATE-----",
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
      Known.certificate + "\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Known.key,
      String(Known.certificate.dropLast(40)),
    ])
  func invalidCertificates(text: String) {
    let error = #expect(throws: Certificate.ReadingError.self) { try Certificate.all(in: Data(text.utf8)) }
    #expect(error?.localizedDescription.contains("BEGIN CERTIFICATE") == true)
  }

  @Test(
    "Text without a public key is an error",
    arguments: [
      "", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", Known.certificate,
    ])
  func invalidKeys(text: String) {
    let error = #expect(throws: Certificate.ReadingError.self) { try PublicKey.all(in: Data(text.utf8)) }
    #expect(error?.localizedDescription.contains("BEGIN PUBLIC KEY") == true)
  }

  // MARK: Files

  private func withFolder(_ files: [String: Data], _ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "certificates-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for (name, data) in files { try data.write(to: folder.appendingPathComponent(name)) }
    try body(folder)
  }

  @Test("A folder returns the certificates of its files") func folder() throws {
    let certificate = try known()
    let pem = Data(Known.certificate.utf8)
    try withFolder(["b.der": certificate.data, "a.PEM": pem, "c.txt": Data("text".utf8)]) {
      (folder: URL) throws in
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("older.pem"), withIntermediateDirectories: false)
      #expect(try Certificate.all(inFolder: folder) == [certificate, certificate])
      #expect(try Certificate.all(contentsOf: folder.appendingPathComponent("a.PEM")) == [certificate])
    }
    try withFolder(["a.pem": pem, "broken.crt": Data("text".utf8)]) { (folder: URL) throws in
      let error = #expect(throws: Certificate.ReadingError.self) { try Certificate.all(inFolder: folder) }
      #expect(error?.path?.hasSuffix("broken.crt") == true)
      #expect(error?.localizedDescription.contains("broken.crt") == true)
    }
    let nowhere = URL(fileURLWithPath: "/nonexistent/folder")
    #expect(throws: Certificate.ReadingError.self) { try Certificate.all(inFolder: nowhere) }
    #expect(throws: Certificate.ReadingError.self) { try Certificate.all(contentsOf: nowhere) }
  }

  @Test("A file without end, a folder and a pipe without a writer are errors", .timeLimit(.minutes(1)))
  func endlessFiles() throws {
    let pem = Data(Known.certificate.utf8)
    try withFolder(["a.pem": pem, "large.pem": pem]) { (folder: URL) throws in
      let (large, pipe) = (
        folder.appendingPathComponent("large.pem"), folder.appendingPathComponent("b.pem")
      )
      #expect(truncate(large.path, off_t(16 << 20 + 1)) == 0)
      #expect(mkfifo(pipe.path, 0o600) == 0)
      let cases = [
        (URL(fileURLWithPath: "/dev/zero"), "more than 16 MiB"), (large, "more than 16 MiB"),
        (folder, "directory"), (pipe, "no process writes"),
      ]
      for (file, words) in cases {
        let error = #expect(throws: Certificate.ReadingError.self, "\(file)") {
          try Certificate.all(contentsOf: file)
        }
        #expect(error?.path == file.path)
        #expect(error?.localizedDescription.contains(words) == true, "\(String(describing: error))")
      }
      let error = #expect(throws: Certificate.ReadingError.self) { try Certificate.all(inFolder: folder) }
      #expect(error?.path == pipe.path)
    }
  }

  @Test("An encrypted certificate is an error, and no passphrase is asked for") func encryptedCertificate() {
    let text = """
      -----BEGIN CERTIFICATE-----
      Proc-Type: 4,ENCRYPTED
      DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF

      AAAAAAAAAAAAAAAAAAAAAA==
      -----END CERTIFICATE-----

      """
    #expect(throws: Certificate.ReadingError.self) { try Certificate.all(in: Data(text.utf8)) }
  }

  @Test("A bundle returns the certificates of its resources") func bundle() throws {
    let certificate = try known()
    let files = [
      "one.cer": certificate.data, "two.CRT": Data(Known.certificate.utf8), "three.der": Data("broken".utf8),
      "four.txt": certificate.data,
    ]
    try withFolder(files) { (folder: URL) throws in
      let bundle = try #require(Bundle(path: folder.path))
      #expect(bundle.af.certificates == [certificate, certificate])
      #expect(bundle.af.publicKeys.map(\.pin.description) == [Known.pin, Known.pin])
      let paths = bundle.af.paths(forResourcesOfTypes: [".cer", "cer", "txt"])
      #expect(paths.map { ($0 as NSString).lastPathComponent }.sorted() == ["four.txt", "one.cer"])
    }
  }
}
