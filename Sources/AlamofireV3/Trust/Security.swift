public import Alamofire

/// What a server has shown.
public typealias SecTrust = Alamofire::ServerTrust
/// A certificate (X.509).
public typealias SecCertificate = Alamofire::Certificate
/// A public key.
public typealias SecKey = Alamofire::PublicKey
