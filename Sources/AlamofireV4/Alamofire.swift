public import Alamofire
@_exported public import Foundation
@_exported public import FoundationNetworking

/// What code of the fourth generation calls by the name of the module: `Alamofire.request(...)`.
public enum Alamofire {
}
