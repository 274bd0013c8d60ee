import Alamofire

/// The challenge of a server that shows its certificates; Foundation's own constant is not available on Linux.
public let NSURLAuthenticationMethodServerTrust = Alamofire::NSURLAuthenticationMethodServerTrust
/// The challenge of a server that asks for a certificate of the client; Foundation's own constant is not available
/// on Linux.
public let NSURLAuthenticationMethodClientCertificate = Alamofire::NSURLAuthenticationMethodClientCertificate
