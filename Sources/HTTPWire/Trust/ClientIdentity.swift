public import FoundationEssentials

/// The identity of a client for servers that request a certificate (RFC 8446 §4.3.2): a certificate, the certificates
/// of its issuers, and the private key.
///
/// It is made of a PKCS#12 file or of PEM texts. A wrong passphrase, a key of another certificate and an expired
/// certificate are errors at once. Set it as ``TransportOptions/clientIdentity`` of a session, or of a request. The
/// key is in no description.
///
/// ```swift
/// var options = TransportOptions()
/// options.clientIdentity = try ClientIdentity(pkcs12: data, passphrase: passphrase)
/// let session = Session(transportOptions: options)
/// ```
public struct ClientIdentity: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The certificates as DER: the client's own, then those of its issuers.
  public let certificates: [Data]
  /// The subject of the client's own certificate.
  public let subject: String
  /// PKCS#8, DER, not encrypted.
  package let privateKey: Data

  package init(certificates: [Data], subject: String, privateKey: Data) {
    self.certificates = certificates
    self.subject = subject
    self.privateKey = privateKey
  }

  /// The subject of the certificate; never the key.
  public var description: String { ReadableText.line("ClientIdentity(\(subject))") }
  /// The ``description``.
  public var debugDescription: String { description }
  /// Without the key, which `dump` would show.
  public var customMirror: Mirror {
    Mirror(self, children: ["certificates": certificates, "subject": subject])
  }
}
