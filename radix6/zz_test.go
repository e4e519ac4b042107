package radix6
import ("testing";"fmt";"math/rand/v2")
func TestZZ(t *testing.T){
	ps:=fullTable(t); vs:=make([]uint32,len(ps)); for i:=range vs{vs[i]=uint32(i)}
	s,_:=Compile(ps,vs,CompileOptions{})
	r:=rand.New(rand.NewPCG(1,1))
	var kinds [8]int; var words [9]int; var pw [9]int
	for range 1<<18 { k:=inside(r,ps[r.IntN(len(ps))])
		ref:=s.refs[s.tableAt(s.top[k.hi>>48],uint32(k.hi>>32)&0xffff)]
		kd:=ref>>30; if kd==3&&ref&isSkip!=0{kd=4}
		kinds[kd]++; if kd==1{words[ref>>27&7+1]++}; if kd==2{pw[ref>>27&7+1]++}
	}
	fmt.Println("kinds code list pair table skip",kinds,"words",words,"pair",pw)
	fmt.Println(len(s.upper)/16,len(s.lower),len(s.refs),len(s.lists),len(s.codes),len(s.skips),len(s.links))
}
