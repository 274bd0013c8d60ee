# Sourced by Scripts/lib/faults/run.

# Scripts/imports
begin
while read -r folder module; do plant "Sources/$folder/Imports$module.swift" "// first line\nimport $module\n"; done <<'END'
HTTPWire Foundation
HTTPSystem HTTPEngine
HTTPSystem CNghttp2
HTTPEngine Alamofire
HTTPEngine CZlib
Alamofire/Run HTTPEngine
Alamofire/Run COpenSSL
Alamofire/Support HTTPEngine
HTTPTestServer HTTPEngine
HTTPTestServer HTTPSystem
Generations/V4 HTTPWire
Generations/Shared AlamofireV4
af HTTPEngine
END
plant Sources/Unknown/A.swift 'import Foundation\n'
plant Sources/Alamofire/Support/Engine.swift 'import HTTPEngine\npackage import HTTPSystem\nimport CLinux\n'
plant Sources/Alamofire/Run/Files.swift 'import HTTPSystem\npackage import HTTPWire\n'
plant Sources/Alamofire/Exports.swift '@_exported public import struct HTTPWire.HTTPMethod\n'
plant Sources/HTTPWire/Text.swift <<'END'
// import Foundation
/* a sample:
import Foundation
*/
let sample = """
  import Foundation
  """
let important = "import Foundation"
END
plant Sources/HTTPWire/Spellings.swift <<'END'
package import Foundation
@preconcurrency import Foundation
  import struct Foundation.URL
@_spi(Inner) public import Foundation
import Synchronization; import Foundation
@_exported public import class Foundation.Process
END
prints 1 Scripts/imports "$tree" <<'END'
Sources/Alamofire/Run/ImportsCOpenSSL.swift:2: Alamofire must not import COpenSSL
Sources/Alamofire/Run/ImportsHTTPEngine.swift:2: Alamofire must not import HTTPEngine
Sources/Alamofire/Support/Engine.swift:3: Alamofire/Support/Engine.swift must not import CLinux
Sources/Alamofire/Support/ImportsHTTPEngine.swift:2: Alamofire must not import HTTPEngine
Sources/Generations/Shared/ImportsAlamofireV4.swift:2: Generations must not import AlamofireV4
Sources/Generations/V4/ImportsHTTPWire.swift:2: Generations must not import HTTPWire
Sources/HTTPEngine/ImportsAlamofire.swift:2: HTTPEngine must not import Alamofire
Sources/HTTPEngine/ImportsCZlib.swift:2: HTTPEngine must not import CZlib
Sources/HTTPSystem/ImportsCNghttp2.swift:2: HTTPSystem must not import CNghttp2
Sources/HTTPSystem/ImportsHTTPEngine.swift:2: HTTPSystem must not import HTTPEngine
Sources/HTTPTestServer/ImportsHTTPEngine.swift:2: HTTPTestServer must not import HTTPEngine
Sources/HTTPTestServer/ImportsHTTPSystem.swift:2: HTTPTestServer must not import HTTPSystem
Sources/HTTPWire/ImportsFoundation.swift:2: HTTPWire must not import Foundation
Sources/HTTPWire/Spellings.swift:1: HTTPWire must not import Foundation
Sources/HTTPWire/Spellings.swift:2: HTTPWire must not import Foundation
Sources/HTTPWire/Spellings.swift:3: HTTPWire must not import Foundation
Sources/HTTPWire/Spellings.swift:4: HTTPWire must not import Foundation
Sources/HTTPWire/Spellings.swift:5: HTTPWire must not import Foundation
Sources/HTTPWire/Spellings.swift:6: HTTPWire must not import Foundation
Sources/Unknown/A.swift:1: this folder has no row in the table of Scripts/imports
Sources/af/ImportsHTTPEngine.swift:2: af must not import HTTPEngine
END
