public import Alamofire
@_exported public import Foundation
@_exported public import FoundationNetworking

/// What code of the third generation calls by the name of the module: `Alamofire.request(.GET, ...)`.
public enum Alamofire {
}
