import AlamofireV4
import Foundation

// The names that samples of documents and doc comments use without declaring them; see `Scripts/samples`. Nothing calls
// these samples.

let user = "user"
let password = "password"

var headers: HTTPHeaders {
  get { [:] }
  set {}
}
var manager: SessionManager { .default }
var response: DefaultDataResponse { preconditionFailure("The samples are compiled, and not run.") }
