import AlamofireV3
import Foundation

// The names that samples of documents and doc comments use without declaring them; see `Scripts/samples`. Nothing calls
// these samples.

var manager: Manager { .sharedInstance }
