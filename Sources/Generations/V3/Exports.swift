// Types of other modules that this generation exports by name, so that their members are visible to a file that imports
// only this module (MemberImportVisibility).
@_exported public import struct Alamofire.Certificate
@_exported public import let Alamofire.NSURLAuthenticationMethodClientCertificate
@_exported public import let Alamofire.NSURLAuthenticationMethodServerTrust
@_exported public import struct Alamofire.PublicKey
@_exported public import typealias Alamofire.SecCertificate
@_exported public import typealias Alamofire.SecKey
@_exported public import typealias Alamofire.SecTrust
@_exported public import class Alamofire.ServerTrust
@_exported public import struct Alamofire.TransportOptions
@_exported public import Foundation
@_exported public import FoundationNetworking
