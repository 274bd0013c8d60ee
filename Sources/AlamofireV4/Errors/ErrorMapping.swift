import Alamofire
import Foundation

/// What users of the fourth generation get in the place of an error of the core; every other error as it is.
func legacy(_ error: any Error) -> any Error {
  guard let error = error as? Alamofire::AFError else { return error }
  return error
}
